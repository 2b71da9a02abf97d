"""What is promised of contracts.toml: facts with their source, found by name, each of use."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ingress.markers import FAMILIES
from reasoning_store.wire import contract_lookup, contract_tables, registry
from tests.properties import each
from tests.wire import row_by_row
from tests.wire.cases import all_cases
from tests.wire.row_by_row import EXPECTATIONS, NAMES, Expectation, is_read_by_ingress

TABLES = row_by_row.read()
HOSTS = {host.id: host for host in contract_tables.shipped_contracts().hosts.values()}.values()
ROWS = row_by_row.rows(TABLES)
READ = [row for row in ROWS if is_read_by_ingress(TABLES, row)]
ITEMS = [TABLES[table][number] for table, number in ROWS if table not in NAMES]


@each("item", ITEMS)
def test_every_row_has_a_source_and_a_date(item: dict[str, Any]) -> None:
    """A fact without either cannot be checked again."""
    assert item["source"].strip()
    assert isinstance(item["checked"], date)
    assert date(2025, 1, 1) <= item["checked"]


@each("item", TABLES["model"])
def test_what_single_models_demand_has_a_source_and_changes_something(
    item: dict[str, Any],
) -> None:
    """Providers, apis and demands are those that there are; a key that is none is refused."""
    (row,) = contract_tables._read({**TABLES, "model": [item]}).models

    assert row.source.strip()
    assert isinstance(item["checked"], date)
    assert row.rules
    assert set(row.providers) <= {host.id for host in HOSTS}
    assert set(row.apis) <= set(contract_lookup.apis())


@each("expectation", EXPECTATIONS)
def test_a_host_behaves_as_its_row_says(expectation: Expectation) -> None:
    """Seen from outside: names, fields, delimiters, counts."""
    assert expectation.observe() == expectation.expected


@each("row", READ, thinned=4)
def test_no_row_can_go_unnoticed(row: tuple[str, Any]) -> None:
    """Without a row that ingress reads, some host is read wrongly."""
    assert row_by_row.broken(row_by_row.without(TABLES, row))


def test_a_name_belongs_to_one_provider() -> None:
    """Ids and aliases are lower case and unique."""
    names = [name for host in HOSTS for name in (host.id, *host.aliases)]

    assert len(names) == len(set(names))
    assert all(name == name.strip().lower() for name in names)


def test_a_name_that_is_given_twice_is_refused() -> None:
    """The file cannot say two things of one name."""
    host = {"id": "x", "api": "openai.chat", "aliases": ["deepseek"]}

    with pytest.raises(ValueError, match="two hosts are named 'deepseek'"):
        contract_tables._read({**TABLES, "host": [*TABLES["host"], host]})


def test_an_api_has_one_meaning_for_each_of_its_names() -> None:
    """No alias stands for two protocols, nor for another's own name."""
    aliases = [alias for names in TABLES["api"].values() for alias in names]

    assert len(aliases) == len(set(aliases))
    assert set(aliases).isdisjoint(contract_lookup.apis())
    assert [*TABLES["api"]] == [protocol.id for protocol in registry.PROTOCOLS]


def test_a_row_names_what_exists() -> None:
    """Providers, apis and marker families are those that there are."""
    providers = {host.id for host in HOSTS}

    for row in contract_tables.shipped_contracts().rows:
        assert row.api in contract_lookup.apis()
        assert row.provider is None or row.provider in providers
        assert set(row.reading.markers) <= FAMILIES.keys()
    for template in contract_tables.shipped_contracts().templates:
        assert set(template.markers) <= FAMILIES.keys()
    for host in HOSTS:
        assert host.api in contract_lookup.apis()


def test_every_marker_family_is_some_models() -> None:
    """A family that no template names would never be looked for."""
    assert {
        name for item in contract_tables.shipped_contracts().templates for name in item.markers
    } == FAMILIES.keys()


def test_every_host_has_a_row_for_its_own_api() -> None:
    """Otherwise its chunks would not say where they came from."""
    for host in HOSTS:
        assert contract_lookup.find_contract(host.id).provider == host.id


def test_the_more_particular_row_comes_first() -> None:
    """The first match wins, so a row for all models hides every row after it."""
    seen: set[tuple[str | None, str]] = set()
    for row in contract_tables.shipped_contracts().rows:
        assert (row.provider, row.api) not in seen
        if "*" in row.models:
            seen.add((row.provider, row.api))


@pytest.mark.parametrize("key", ["sauce", "Fields"])
def test_a_row_with_an_unknown_key_is_refused(key: str) -> None:
    """A misspelt fact is no fact."""
    row = {"api": "openai.chat", key: []}

    with pytest.raises(ValueError, match=key):
        contract_tables._read({**TABLES, "contract": [row]})


def test_a_row_that_is_like_another_says_the_rest_as_that_one_does() -> None:
    """Its own words come first; one that is like no one is refused."""
    one = {"provider": "deepseek", "api": "openai.chat", "returns_in": "reasoning", "opaque": True}
    other = {"provider": "zai", "api": "openai.chat", "like": "deepseek", "returns_in": "thinking"}

    hosts = [{"id": "deepseek"}, {"id": "zai"}]
    told = contract_tables.resolve_likes({"contract": [one, other], "host": hosts})
    assert told["contract"][1] == {**one, "provider": "zai", "returns_in": "thinking"}
    with pytest.raises(ValueError, match="no contract of deepseek"):
        contract_tables.resolve_likes({"contract": [other], "host": hosts})


@each("case", all_cases())
def test_every_provider_and_api_of_the_cases_is_known(case: Any) -> None:
    """No one has to translate the names of the recorded shapes."""
    contract = contract_lookup.find_contract(case.provider, api=case.api)

    assert contract.provider == contract_lookup.provider_id(case.provider)


def test_an_unknown_host_gets_the_row_of_its_api() -> None:
    """Chat Completions, with tags, and every alias in the order in which they carry most."""
    contract = contract_lookup.find_contract("nobody-knows", "some-model")

    assert (contract.api, contract.provider, contract.reading.tags) == ("openai.chat", None, True)
    assert contract.reading.fields[0] == "reasoning_details"
    assert contract.reading.fields == contract_lookup.mirrored_fields(contract)
    assert contract_lookup.provider_id(" Nobody-Knows ") == "nobody-knows"


def test_an_unknown_api_is_refused_with_the_ones_that_there_are() -> None:
    """The hint names them."""
    with pytest.raises(InvalidCall) as caught:
        contract_lookup.find_contract(api="telepathy")

    assert "openai.chat" in str(caught.value.hint)


def test_an_explicit_api_wins_over_the_hosts_own() -> None:
    """Many hosts speak several protocols."""
    assert contract_lookup.find_contract("anthropic", api="openai.chat").api == "openai.chat"
    assert contract_lookup.find_contract("deepseek", api="messages").api == "anthropic.messages"


def test_mirrors_are_a_contracts_fields_and_then_the_rest_of_its_family() -> None:
    """What arrives is read whatever the row says; other protocols have no such aliases."""
    every = contract_lookup.find_contract().reading.fields

    assert (
        contract_lookup.mirrored_fields(contract_lookup.find_contract("xai"))[0]
        == "reasoning_content"
    )
    assert set(contract_lookup.mirrored_fields(contract_lookup.find_contract("xai"))) == set(every)
    assert set(contract_lookup.mirrored_fields(contract_lookup.find_contract("mistral"))) == set(
        every
    )
    assert contract_lookup.mirrored_fields(contract_lookup.find_contract("anthropic")) == ()
    assert contract_lookup.mirrored_fields(contract_lookup.find_contract("ollama")) == ("thinking",)


def test_a_models_delimiters_are_looked_for_wherever_the_text_may_hold_them() -> None:
    """They belong to the model; a protocol that keeps reasoning out of the text has none."""
    assert contract_lookup.find_contract("vllm", "gpt-oss:20b").reading.markers == ("harmony",)
    assert contract_lookup.find_contract("ollama", "gpt-oss:20b").reading.markers == ("harmony",)
    assert (
        contract_lookup.find_contract("openai", "gpt-oss-120b", "openai.responses").reading.markers
        == ()
    )
    assert contract_lookup.find_contract("vllm", None).reading.markers == ()


@pytest.mark.parametrize("name", ["", "  ", None])
def test_no_name_is_no_provider(name: str | None) -> None:
    """An empty name is not an unknown provider."""
    assert contract_lookup.provider_id(name) is None
    assert contract_lookup.find_host(name) is None
