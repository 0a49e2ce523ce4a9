"""Prose as a radio plays it beside the wearer: news, weather, recipes, sport, traffic, talk.

Made of parts by a fixed seed, so that every run plays the same. None of it is a command; much of it
sounds like one (times, durations, notes, lists, weather), because radios talk so.
"""

import random
from collections.abc import Iterator
from typing import Final

_PARTS: Final = {
    "who": (
        "the minister|a farmer from the valley|our reporter|the mayor|a group of students|the new"
        " coach|my grandmother|an old sailor|the orchestra|a young doctor|the neighbours|two"
        " engineers|the council|a woman from Leeds|the goalkeeper|the baker on the corner"
    ).split("|"),
    "did": (
        "explained why|said that|could not believe that|had always hoped that|told the newspaper"
        " that|was surprised that|remembered how|denied that|wrote in a letter that|noticed that"
    ).split("|"),
    "fact": (
        "the bridge would open in the spring|prices have fallen again|the old cinema is for"
        " sale|nobody wanted to stop|the river had never been so low|trains were late for most of"
        " the week|the harvest was better than last year|a second school is needed|the lights went"
        " out at midnight|there were no notes left in the desk|the timer on the boiler had"
        " failed|wolves have come back to the forest|the museum is closed until further"
        " notice|the list of players is too short|visitors may take pictures in the hall|the"
        " screen in the square stayed dark|the calendar was printed with a mistake"
    ).split("|"),
    "town": ("Bristol|Oslo|Turin|Hamburg|Lisbon|Cork|Ghent|Aarhus|Lyon|Krakow|Perth|Boston").split(
        "|"
    ),
    "sky": (
        "light rain in the morning|strong winds from the west|a clear and cold night|fog along the"
        " coast|sunny spells after lunch|a few heavy showers|snow above six hundred metres"
    ).split("|"),
    "number": (
        "two|three|four|five|seven|ten|twelve|fifteen|twenty|thirty|forty five|ninety"
    ).split("|"),
    "hour": (
        "six|half past seven|a quarter to nine|ten|noon|two in the afternoon|five past four"
    ).split("|"),
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday".split("|"),
    "food": ("onions|lentils|chicken|pastry|mushrooms|rice|cabbage|plums|potatoes|tomatoes").split(
        "|"
    ),
    "team": (
        "the visitors|the home side|United|the champions|Rovers|the national team|Athletic"
    ).split("|"),
    "road": (
        "the ring road|the tunnel|the motorway near the airport|the high street|junction eleven"
    ).split("|"),
    "thing": (
        "a piano|a garden|a bicycle|the telephone|a violin|an island|the kitchen|a lighthouse|the"
        " library|a clock|a pair of glasses|a wooden boat"
    ).split("|"),
    "person": "Martin|Clara|Ahmed|Susan|George|Ingrid|Paul|Lucy|Oscar|Nora".split("|"),
}
_TEMPLATES: Final = (
    "{who} {did} {fact}.",
    "In {town}, {who} {did} {fact}.",
    "The forecast for {town} is {sky}, and {number} degrees by {hour}.",
    "Tomorrow brings {sky}; on {day} expect {sky}.",
    "It is {hour}, and this is the news from {town}.",
    "Cook the {food} for {number} minutes, then add the {food} and stir well.",
    "Leave the {food} in the oven for {number} minutes and set them aside.",
    "{team} beat {team} by {number} to {number} on {day}.",
    "After {number} minutes {team} lost the ball, and {team} scored.",
    "There is a queue of {number} miles on {road}, so allow another {number} minutes.",
    "{road} is closed near {town} until {hour} on {day}.",
    "I grew up in {town}, said {person}, and what I remember best is {thing}.",
    "And what did you do then, {person}? Well, I went to {town} and bought {thing}.",
    "You have to understand, {person}, that {fact}.",
    "{person} was looking for {thing} when {who} called from {town}.",
    "Next on this programme, {person} speaks with {who} about {thing}.",
    "Do you know what time the boat leaves? At {hour}, I believe, but never on a {day}.",
    "Our next song was recorded in {town}, and it stayed in the charts for {number} weeks.",
    "The second caller today is {person}, who wants to know how to repair {thing}.",
    "Shares in {town} lost {number} percent after {who} {did} {fact}.",
    "She took {thing} home, cleaned it, and sold it for {number} hundred pounds.",
    "No, not on {day}, said {person}; yes, perhaps at {hour}.",
    "Please remember to bring {thing} if you visit us in {town} this {day}.",
    "If {fact}, then {who} will have to pay {number} thousand pounds.",
    "For {number} years {person} lived above {thing} and never once complained.",
)


def prose(seed: int = 20261123) -> Iterator[str]:
    """Yield sentences without end."""
    choose = random.Random(seed)
    while True:
        text = choose.choice(_TEMPLATES)
        while "{" in text:
            before, _, rest = text.partition("{")
            name, _, after = rest.partition("}")
            text = before + choose.choice(_PARTS[name]) + after
        yield text[0].upper() + text[1:]
