"""Bytes that a program may write to its terminal, drawn: parts of sequences, and what has no place in them."""

from hypothesis import strategies as st

__all__ = ["BYTES"]

_STRAYS = [
    b"\x00",
    b"\x05",
    b"\b",
    b"\n",
    b"\r",
    b"\x0e",
    b"\x7f",
    b"\x18",
    b"\x1a",
    b"\x80",
    b"\x9b",
    b"\x9d",
    b"\xc2",
]
_PARTS = [
    *(b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1bk", b"\x07", b"\x1b\\", b"\xc2\x9b"),
    *(b"?", b">", b"=", b"<", b"!", b"$", b" ", b'"', b"#", b"%", b"(", b"*", b"+", b";", b":", b"0", b"00", b"1"),
    *(
        b"6n",
        b"5n",
        b"c",
        b"0c",
        b"x",
        b"Z",
        b"t",
        b"8;4;4t",
        b"21t",
        b"$p",
        b"$qm",
        b"+q544e",
        b">q",
        b"?u",
        b"h",
        b"l",
    ),
    *(b"52;c;aGk=", b"52;c;?", b"11;?", b"4;1;?", b"1337;", b"Copy=:aGk=", b"5522;type=read;", b"tmux;", b"Ga=q,i=1;A"),
    *(b"2", b"38", b"42", b"1049", b"3", b"40", b"%@", b"?2l", b"?38h", b"0;title", b"8;;http://a/\x07", b"9;4;1;50"),
    *(b"q#0~~", b"text", "漢字é".encode(), b"\x1b[31m", b"\x1b[2;3H", b"\x1b(0", b"\x1b)B", b"\x1bc", b"99;i=1:p=?;"),
]
BYTES = st.lists(st.one_of(st.sampled_from(_PARTS), st.sampled_from(_STRAYS), st.binary(max_size=4)), max_size=30).map(
    b"".join
)
"""Streams: most of them begin sequences, and have strays in them."""
