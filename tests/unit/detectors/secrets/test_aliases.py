"""Names of other tools lead to our kinds."""

import pytest

from guardrail_service.detectors.secrets import aliases as secret_aliases
from guardrail_service.detectors.secrets.aliases import canonical
from guardrail_service.detectors.secrets.patterns import KINDS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("jwt", "jwt"),
        ("AWS Access Key", "aws_access_key_id"),
        ("aws-access-token", "aws_access_key_id"),
        ("github-pat", "github_token"),
        ("Generic API Key", "generic_secret"),
        ("Mailgun API token", "mailgun_key"),
        ("mailchimp-api-key", "mailchimp_key"),
        ("WINDOWS_PRODUCT_KEY", "windows_activation_key"),
        ("person", None),
        ("", None),
    ],
)
def test_names_of_other_tools_are_understood(name: str, kind: str | None) -> None:
    """Case, hyphens and words such as "token" do not matter."""
    assert canonical(name) == kind


def test_every_kind_is_its_own_name() -> None:
    """An alias never hides a kind."""
    assert all(canonical(kind) == kind for kind in KINDS)


def test_aliases_lead_to_kinds_and_only_to_one() -> None:
    """The table has no dead or doubled entries."""
    names = [name for names in secret_aliases._ALIASES.values() for name in names.split()]
    assert len(names) == len(set(names))
    assert not set(names) & KINDS.keys()
    assert secret_aliases._ALIASES.keys() <= KINDS.keys()
