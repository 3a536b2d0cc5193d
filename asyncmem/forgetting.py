"""Whether somebody asks for something to be forgotten, in eight languages (pure)."""

import re

_START = (
    r"(?:^|[.!?;:,\n。！？；，、،]\s*|\b(?:please|kindly|just|also|and|then|now|bitte|und|dann|por favor|y|пожалуйста|и"
    r"|(?:can|could|would|will) you(?: please)?|you (?:can|may|should)|you to|kannst du|könntest du|puedes|podrías"
    r"|можешь|من فضلك|رجاء|رجاءً|أرجو أن)[\s,،]+)[¿¡\"']?"
)
"""Where a request begins: nobody else is said to forget, and nobody is told not to."""
_ENGLISH = (
    r"(?:forget (?:(?:all )?about (?!it\b)\w|that\b|what\b|where\b|when\b|who\b|how\b|which\b|my\b|our\b"
    r"|everything\b|anything\b|all\b|i\b|i'm\b|me\b|the (?:fact|thing|part)\b)"
    r"|(?:delete|remove|erase|wipe|clear|drop) (?:what|everything|anything|all|my|the (?:fact|memory|note|entry))\b"
    r".{0,60}\b(?:you (?:know|have|remember|saved|stored|noted)|about me|i (?:told|said)|memor\w+|profile)"
    r"|(?:delete|remove|erase|wipe|clear) (?:all )?(?:your|my) memor\w+"
    r"|(?:do not|don't|stop) (?:remember|stor|sav|keep|memoriz|memoris)(?:e|ing)?"
    r" (?:that|what|where|my|this|these|any|anything|everything)\b)"
)
_GERMAN = (
    r"(?:vergiss|vergesst|vergessen sie)(?: bitte)?,? (?!nicht\b)"
    r"(?:dass|was|wo|wie|wer|wann|meine?[nmrs]?|alles|das mit)\b"
    r"|(?:lösche?|löschen sie|entferne?|streiche?)(?: bitte)? .{0,60}"
    r"\b(?:über mich|gedächtnis|speicher|erinnerung\w*|weißt|gemerkt|gespeichert|gesagt habe)\b"
    r"|merke? dir (?:das |meine?\w* \w+ )?nicht\b"
)
_SPANISH = (
    r"(?:olvida|olvide|olvídate de|olvídese de|borra|borre|elimina|elimine)(?: por favor)?,?"
    r" (?:que|lo que|lo de|mis?|todo|dónde|donde|cómo|cuándo|quién)\b"
    r"|no (?:recuerdes|guardes|memorices|recuerde|guarde)\b"
)
_RUSSIAN = (
    r"(?:забудь|забудьте|удали|удалите|сотри|сотрите)(?:,? пожалуйста)?,?"
    r" (?:что|где|как|кто|когда|про|об?о?|мо[йюяеи]\w*|вс[её])\b|не (?:запоминай|запоминайте|храни|храните)\b"
)
_CHINESE = (
    r"(?:(?<![我你他她它们人会能没不别勿要])|帮我|幫我)(?:忘掉|忘记|忘記|忘了)(?:我|关于我|關於我|有关我|之前|刚才|这|那|所有|一切)"
    r"|把?我.{0,20}(?:忘掉|忘了吧|忘记吧|从记忆|删掉|删除|刪除)|(?:删除|删掉|刪除|清除|抹去).{0,15}(?:记忆|記憶|关于我|我的)"
    r"|(?:不要|别|請勿|请勿)(?:再)?(?:记住|記住|记录|记着)"
)
_JAPANESE = (
    r"忘れて(?:ください|下さい|くれ|ほしい|欲しい|もらえ|ね|よ|[。！!]|\s*$)|覚え(?:ないで|なくていい)"
    r"|(?:記憶|覚えて|情報|こと|メモ|話|について).{0,15}(?:削除して|消して|消去して)(?:ください|下さい|くれ|ほしい|[。！!]|\s*$)"
)
_KOREAN = (
    r"잊어\s?(?:줘|주세요|주십시오|버려|주시|달라)|기억하지\s?(?:마|말)"
    r"|(?:기억|정보|메모리|내용|얘기|이야기|사실|것).{0,12}(?:삭제|지워)\s?(?:해\s?)?(?:줘|주세요|주십시오)"
)
_ARABIC = (
    r"(?:انسَ|انس|إنس|انسى|احذف|امسح|امح)\s+(?:أن|أنني|أني|ما|أين|كل|كيف|متى|عن|معلومات\w*|بيانات\w*|\w+ي)\b"
    r"|لا\s+(?:تتذكر|تحفظ|تحتفظ)\b"
)
_WISH = re.compile(
    rf"{_START}(?:{_ENGLISH}|{_GERMAN}|{_SPANISH}|{_RUSSIAN}|{_ARABIC})|{_CHINESE}|{_JAPANESE}|{_KOREAN}",
    re.IGNORECASE,
)


def wishes_to_forget(text: str) -> bool:
    """Whether the text asks that something about its writer be forgotten.

    It knows plain requests in English, Chinese, Japanese, Korean, German, Russian, Arabic and Spanish, and is wrong
    rather by missing one than by seeing one: "don't forget", "I forget" and "forget it" are none.
    """
    return _WISH.search(text.replace("’", "'")) is not None
