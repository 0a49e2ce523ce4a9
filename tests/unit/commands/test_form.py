"""What a tool's server asks within a call, answered by the person who calls at a terminal."""

import pytest

from edge.commands.call import ROUNDS
from tests.unit.commands.test_confirm import at_terminal
from tests.unit.control.house import open_house
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.enable_socket
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer"},
        "drink": {"type": "string", "enum": ["tea", "coffee"], "default": "tea"},
        "sure": {"type": "boolean"},
        "note": {"type": "string"},
    },
    "required": ["name", "age", "sure"],
}


def asks(schema, **more):
    params = {"message": "Who are \x1b[31myou?", "requestedSchema": schema, **more}
    requests = {"q": {"method": "elicitation/create", "params": params}}
    return ToolResponse.failure(
        ErrorCode.INVALID_ARGUMENTS,
        "House asks for more before it goes on",
        details={"inputRequests": requests, "requestState": "s1"},
    )


async def call(tmp_path, question, work, *more, rounds=1):
    """The inputs that the daemon got, and what the person saw."""
    async with open_house(tmp_path) as house:
        answers = house.calls.answers
        answers["notes:list"] = question

        async def answer(
            call, *, progress=None, wait=None, live=False, new_id=False, plain=house.calls.call
        ):
            if len(house.calls.seen) >= rounds and (call.input or {}).get("inputResponses"):
                answers["notes:list"] = ToolResponse(data="welcome")
            return await plain(call, progress=progress, wait=wait)

        house.calls.call = answer
        words = ("call", "notes:list", "--socket", str(house.path), *more)
        code, seen = await at_terminal(work, *words)
        return code, seen, [call.input for call, _ in house.calls.seen]


@pytest.mark.requirement("I13-older-questions")
async def test_each_field_is_asked_for_and_a_wrong_value_again(tmp_path):
    def work(person):
        for prompt, line in (
            ("Your name (string): ", "Ada"),
            ("age (integer): ", "old"),
            ("age (integer): ", "36"),
            ("drink (tea, coffee; Enter alone: tea): ", ""),
            ("sure (yes or no): ", "maybe"),
            ("sure (yes or no): ", "yes"),
            ("note (string; Enter alone: leave it out): ", ""),
        ):
            person.reads(prompt)
            person.seen = ""
            person.types(line)
        person.reads("welcome")

    code, _, inputs = await call(tmp_path, asks(FORM), work)
    content = {"name": "Ada", "age": 36, "drink": "tea", "sure": True}
    answer = {"q": {"action": "accept", "content": content}}
    assert (code, inputs) == (0, [{}, {"inputResponses": answer, "requestState": "s1"}])


@pytest.mark.parametrize(("typed", "action"), [("yes", "accept"), ("no", "decline")])
async def test_a_form_without_fields_is_a_yes_or_no(tmp_path, typed, action):
    def work(person):
        person.reads("Agree? Type yes or no: ")
        person.types(typed)
        person.reads("welcome")

    code, seen, inputs = await call(tmp_path, asks({"type": "object"}), work)
    assert (code, inputs[1]["inputResponses"]["q"]["action"]) == (0, action)
    assert r"Who are \x1b[31myou?" in seen


async def test_a_choice_is_typed_by_its_title_and_a_number_is_finite(tmp_path):
    fields = {
        "drink": {"oneOf": [{"const": "t", "title": "Tea"}, {"const": "c", "title": "Coffee"}]},
        "sugar": {"type": "number"},
    }

    def work(person):
        for prompt, line in (
            ("drink (Tea, Coffee): ", "Milk"),
            ("drink (Tea, Coffee): ", "Coffee"),
            ("sugar (number): ", "nan"),
            ("sugar (number): ", "inf"),
            ("sugar (number): ", "1.5"),
        ):
            person.reads(prompt)
            person.seen = ""
            person.types(line)
        person.reads("welcome")

    schema = {"type": "object", "properties": fields, "required": ["drink", "sugar"]}
    code, _, inputs = await call(tmp_path, asks(schema), work)
    assert (code, inputs[1]["inputResponses"]["q"]["content"]) == (0, {"drink": "c", "sugar": 1.5})


async def test_every_answer_that_a_person_types_is_sent(tmp_path):
    """The server asks without end; the last question is not asked any more."""

    def work(person):
        for _ in range(ROUNDS):
            person.reads("Agree? Type yes or no: ")
            person.seen = ""
            person.types("yes")
        person.reads("House asks for more before it goes on (")

    code, _, inputs = await call(tmp_path, asks({"type": "object"}), work, rounds=99)
    actions = [given["inputResponses"]["q"]["action"] for given in inputs[1:]]
    assert (code, actions) == (1, ["accept"] * ROUNDS)


async def test_what_is_asked_on_a_web_page_is_declined_here(tmp_path):
    question = asks({}, mode="url", url="https://x.example")
    code, seen, inputs = await call(tmp_path, question, lambda person: person.reads("welcome"))
    assert (code, "on a web page" in seen) == (0, True)
    assert inputs[1]["inputResponses"] == {"q": {"action": "decline"}}


async def test_with_json_nobody_is_asked(tmp_path):
    work = lambda person: person.reads("inputRequests")  # noqa: E731
    code, _, inputs = await call(tmp_path, asks(FORM), work, "--json")
    assert (code, inputs) == (1, [None])
