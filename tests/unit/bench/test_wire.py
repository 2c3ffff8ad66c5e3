"""Response heads; whole exchanges are in test_load.py."""

from guardrail_bench.wire import parse_head


def test_a_head_is_its_status_and_headers_with_lower_case_names() -> None:
    """Values keep colons and lose the blanks around them."""
    status, headers = parse_head(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nX-At:  a:b \r\n\r\n"
    )
    assert status == 429
    assert headers == {"retry-after": "2", "x-at": "a:b"}
