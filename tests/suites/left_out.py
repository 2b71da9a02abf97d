"""The tests of foreign suites that are not run, each with the reason; a plugin of their pytest.

A pattern that matches no test is an error: the table holds nothing that is out of date.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

NO_STORED_CHATS = "the gateway does not serve chat completions that a provider stores"
TWO_NAMES = "it names a conversation and a previous response at once, which the API excludes"
LIMIT_0 = "it asks for limit=0, and the API's limit is from 1 to 100"
NO_DELETION = "the gateway does not change the provider's models"

LEFT_OUT = {
    "*/chat/completions/test_messages.py::*::test_[mrs]*": NO_STORED_CHATS,
    "*/chat/test_completions.py::*::test_[mrs]*_delete": NO_STORED_CHATS,
    "*/chat/test_completions.py::*::test_[mrs]*_list": NO_STORED_CHATS,
    "*/chat/test_completions.py::*_list_with_all_params": NO_STORED_CHATS,
    "*/chat/test_completions.py::*::test_[mrs]*_retrieve": NO_STORED_CHATS,
    "*/chat/test_completions.py::*::test_[mrs]*_update": NO_STORED_CHATS,
    "*/conversations/test_items.py::*_list_with_all_params": LIMIT_0,
    "*/responses/test_input_items.py::*_list_with_all_params": LIMIT_0,
    "*/responses/test_input_tokens.py::*_count_with_all_params": TWO_NAMES,
    "*/test_responses.py::*_create_with_all_params_overload_?": TWO_NAMES,
    "openai/*/test_models.py::*::test_[mrs]*_delete": NO_DELETION,
}
"""The reason by pattern: the SDK, the file, the class and the name, without parameters.

``test_[mrs]*`` leaves in those that ask no server: ``test_path_params_...``.
"""


def pytest_addoption(parser: Any) -> None:
    """Take the name of the SDK."""
    parser.addoption("--sdk")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Take the tests of the table out."""
    sdk = config.getoption("--sdk")
    names = {item: f"{sdk}/{item.nodeid.partition('[')[0]}" for item in items}
    files = {name.partition("::")[0] for name in names.values()}
    for pattern in LEFT_OUT:
        is_here = any(fnmatchcase(file, pattern.partition("::")[0]) for file in files)
        if is_here and not any(fnmatchcase(name, pattern) for name in names.values()):
            raise ValueError(f"{pattern} of tests/suites/left_out.py matches no test")
    out = [one for one in items if any(fnmatchcase(names[one], it) for it in LEFT_OUT)]
    config.hook.pytest_deselected(items=out)
    items[:] = [one for one in items if one not in set(out)]
