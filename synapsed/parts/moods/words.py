"""Words that express feelings, in English and Japanese.

The lists have only words about the writer's own feeling, or of gratitude, reproach and assent. Technical words that
other lists count as negative are left out on purpose ("error", "failed", "kill", "bug", "fatal", "abort"): a person who
writes to a programming agent uses them all day without any anger.

Every word of an English term must occur in this order; a Japanese term is searched as it is. STRONG terms express a
feeling; MILD ones may be used without a feeling.
"""

from collections.abc import Mapping
from typing import Literal

type Emotion = Literal["frustration", "confidence", "fatigue", "joy"]
type Terms = Mapping[Emotion, tuple[str, ...]]


def _list(text: str) -> tuple[str, ...]:
    return tuple(term.strip() for term in text.split(",") if term.strip())


STRONG: Terms = {
    "frustration": _list(
        "annoyed, annoying, argh, awful, come on, dammit, damn, damn it, disappointed, disappointing, ffs, for the "
        "last time, frustrated, frustrating, fuck, fucking, hate this, hopeless, horrible, how many times, i "
        "already told you, i give up, i told you, idiot, idiotic, infuriating, irritating, makes no sense, "
        "nonsense, not what i asked, not what i wanted, pointless, ridiculous, shit, sick of, stupid, terrible, "
        "this is garbage, this is the worst, ugh, unacceptable, unbelievable, useless, waste of time, wasting my "
        "time, what the hell, why can't you, why won't you, wtf, you broke, you don't listen, you ignored, you keep"
    ),
    "confidence": _list(
        "i am certain, i am confident, i am sure, i know exactly, i'm certain, i'm confident, i'm sure, lgtm, looks "
        "good to me, no doubt, ship it, works as expected"
    ),
    "fatigue": _list(
        "brain is fried, burned out, burnt out, call it a day, can't focus, can't keep my eyes open, can't think "
        "straight, done for today, done for tonight, enough for today, i am exhausted, i need a break, i need "
        "sleep, i'm exhausted, long day, need some sleep, sleepy, so tired, tired, too late for this, worn out"
    ),
    "joy": _list(
        "amazing, awesome, beautiful, brilliant, excellent, fantastic, finally works, hooray, i love it, i'm happy, "
        "love it, love this, made my day, perfect, so happy, superb, wonderful, woohoo, works finally, wow, yay, "
        "you rock, you're the best"
    ),
}
"""Strong terms in English."""

MILD: Terms = {
    "frustration": _list(
        "again wrong, doesn't help, don't understand why, i said, not again, not helpful, same error, same mistake, "
        "same problem, seriously, still broken, still doesn't work, still failing, still fails, still not, still "
        "the same, still wrong, that's wrong, this is wrong, why does it keep, wrong again"
    ),
    "confidence": _list(
        "clear now, exactly right, exactly what i, got it, i see now, i understand now, looks good, makes sense, "
        "sounds good, that makes sense, that works, understood, works now"
    ),
    "fatigue": _list("continue tomorrow, getting late, it's late, need a pause, tomorrow then"),
    "joy": _list(
        "appreciate it, cool, glad, good job, great, great job, great work, nice one, nice work, thank you, thanks, "
        "that's nice, thx, very nice, well done"
    ),
}
"""Mild terms in English."""

JAPANESE: Mapping[Literal["strong", "mild"], Terms] = {
    "strong": {
        "frustration": _list(
            "いい加減にし, いらいらす, うざい, うんざり, くそ!, くそっ, ふざけ, むかつく, もういい, イライラす, "
            "クソが, クソッ, ムカつく, 何回言え, 何度も同じ, 何度も言っ, 何度言え, 使い物にならない, 使えない奴, "
            "時間の無駄, 最低だ, 最悪!, 最悪だ, 最悪です, 腹が立つ, 言ったでしょ, 言ったよね, 話を聞け, 頼んでない"
        ),
        "confidence": _list("自信がある, 自信あり, 確信し, 間違いない, 間違いありません, 完全に理解し"),
        "fatigue": _list(
            "くたびれた, しんどい, つかれたー, ねむい, へとへと, もう限界, ヘトヘト, 今日はここまで, 今日は終わり, "
            "休みたい, 寝たい, 疲れた, 疲れてき, 疲れました, 眠い, 眠たい, 頭が回らない"
        ),
        "joy": _list(
            "うれしい!, すごい!, すばらしい, やった!, やったー, 動いた!, 動いたー, 大好き, 嬉しい!, 完璧!, 完璧だ, "
            "完璧です, 感動し, 最高!, 最高だ, 最高です, 神対応, 素晴らしい"
        ),
    },
    "mild": {
        "frustration": _list(
            "そうじゃない, そうじゃなくて, ちがうって, なんでまた, なんで動かない, また同じ, また失敗, "
            "まだ動かない, まだ動きません, 何で動かない, 全然だめ, 全然ダメ, 直っていない, 直ってない, 違うって"
        ),
        "confidence": _list(
            "いい感じ!, いい感じだ, いい感じです, なるほど, わかりました, 分かりました, 問題ありません, "
            "問題なさそう, 理解できた, 納得"
        ),
        "fatigue": _list("続きは明日, また明日"),
        "joy": _list("ありがとう, 助かった, 助かりました, いいね, ナイス, さすが"),
    },
}
"""Terms in Japanese; `!` means the wide exclamation mark too. Words that are also a greeting (お疲れ様), a request
(助かります, いい感じにして) or a measure (最高速度, 最悪の場合) are left out."""

NEGATIONS = frozenset(
    _list(
        "aren't, didn't, didnt, doesn't, doesnt, don't, dont, hardly, isn't, isnt, never, not, wasn't, wasnt, "
        "without, won't"
    )
)
"""Words that cancel an English term if one of them is among the two words before it, unless a comma is between them."""

NOT_BEHIND = ("ない", "なく", "ません")
"""Words that cancel a Japanese term if one of them is within the four characters after it."""

FACES: Terms = {
    "frustration": ("😠", "😡", "🤬", "😤", "🤦", "🙄", ":(", ":-(", ">:("),
    "confidence": ("👍", "💪", "😎"),
    "fatigue": ("😴", "🥱", "😩", "😫"),
    "joy": ("😀", "😃", "😄", "😁", "😊", "😍", "🥳", "🎉", "🙌", "❤", ":)", ":-)", ":D", ":-D", "^_^", "(^^)"),
}
