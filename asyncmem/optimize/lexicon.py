"""Words that a summary may vary without a fact being lost, and those that turn a statement around (pure).

The lists are closed and small on purpose. A word that stands in none of them is a fact: leaving it out is noticed.
"""

import re


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


_CLASSES = {
    "like": (
        "like likes liked love loves enjoy enjoys adore adores fond fan keen"
        " mag liebt gern gerne mögen gefällt gusta gustan encanta encantan ama"
        " любит нравится нравятся обожает يحب تحب"
    ),
    "own": (
        "has have own owns keep keeps possess possesses hat besitzt hält tiene posee имеет есть у لديه لديها يملك تملك"
    ),
    "call": "named name called heißt heissen namens llama llamado llamada зовут зовется называется اسمه اسمها",
    "live": (
        "live lives reside resides residing based living wohnt lebt vive reside живет живёт проживает"
        " يعيش تعيش يسكن تسكن"
    ),
    "work": "work works working employed arbeitet beschäftigt trabaja работает يعمل تعمل",
}
CLASS_OF = {word: name for name, words in _CLASSES.items() for word in words.split()}
"""Verbs that say the same, by the name of what they say."""

CLASSES = frozenset(_CLASSES)
PLACED = frozenset({"live", "work"})
"""Classes of verbs that share a place: "lives and works in Leeds"."""

_EMPTY_WORDS = (
    # en
    "a an the is are am be user users and or in at on of for with as that which who whom this very also currently"
    " do does additionally furthermore moreover too it its s"
    # de
    " der die das den dem des ein eine einen einem einer ist sind und oder im am nutzer nutzerin benutzer auch"
    " derzeit aktuell mit von bei als für"
    # es
    " el la los las un una unos unas es está son y o usuario usuaria en de del con que también actualmente por para"
    # ru
    " и или в во на с со пользователь пользователя пользовательница также сейчас это является"
    # ar
    " في من المستخدم المستخدمة هو هي أيضا"
)
EMPTY = words(_EMPTY_WORDS)
"""Words of the frame."""
PRONOUNS = words("he she they him her them his their er sie ihr ihre sein seine él ella su sus он она они его ее её их")
"""Stand for the user, unless somebody else was named before."""
THEY = words("they them their")
"""Stand for the user, unless several others were named before."""
ASIDE = words(
    "always often usually regularly mostly mainly still already both immer oft meist meistens noch schon"
    " le les un une des du l lo gli i os as het"
    " siempre todavía ya casi toujours souvent encore sempre всегда часто обычно еще ещё уже"
)
"""Adverbs and articles, which stand before a verb without being its subject."""
PERSONS = words(
    "sister brother mother father mom mum dad wife husband spouse partner girlfriend boyfriend fiance son daughter kid"
    " child baby twin friend colleague coworker boss manager neighbor neighbour uncle aunt cousin grandmother"
    " grandfather grandma grandpa niece nephew"
    " roommate flatmate teacher doctor dog cat parrot bird horse pet puppy kitten"
    " schwester bruder mutter vater frau mann sohn tochter kind freund freundin kollege kollegin chef chefin hund katze"
    " hermana hermano madre padre esposa esposo marido mujer hijo hija amigo amiga jefe jefa perro gato"
    " сестра брат мать отец мама папа жена муж сын дочь друг подруга начальник собака кошка кот"
)
"""Whom a pronoun may stand for."""
SEVERAL = words("parents children kids people eltern kinder padres hijos родители дети")
"""The same, for "they"."""
ABOUT_PERSONS = PERSONS | SEVERAL | PRONOUNS
ONE_PERSON = words("he she er él ella он она")
"""Stand for one person as the subject; German "sie" is several as well."""
PLACING = words("in from at near aus en de à a в из")
"""What is named after these is a place, not a person whom a pronoun may stand for."""
BEING = words("is are was were ist sind war es son est é è")
"""Verbs of the frame."""
AGES = words("old years year yrs alt jahre jahr años año ans anos anni jaar лет года год")
"""What a number that stands alone may have with it, being an age."""
OWNING = words("his her their ihr ihre sein seine su sus его ее её их")
"""Say in a result that somebody has something."""
DIRECTED = words(
    "from to over than before after until till since into onto against under above between by instead"
    " von nach vor bis seit gegen statt über unter desde hasta antes después sobre contra а из от до после перед"
    " إلى عن قبل بعد منذ"
)
"""Words whose place decides which way round a statement is."""
DETERMINERS = words(
    "a an the ein eine einen einem einer der die das den dem un una unos unas el la los las his her their"
)
UNITS = words(
    "km m cm mm mi mile miles kg g mg lb lbs oz l ml liter litre liters litres hour hours h min minute minutes s sec"
    " second seconds day days week weeks month months year years eur euro euros usd dollar dollars gbp"
    " pounds € $ £ ¥ % °"
    " tage tag stunden stunde jahre jahr monate wochen años año días meses лет года год км кг"
)

_JOINING_WORDS = (
    "there both together well while since where when called old years aged once each respectively whose named then"
    " be being been was were other another one s"
    " sowie außerdem zudem dort wo dabei beide alt jahre dazu sich"
    " además allí donde ambos se años vez cuyo cuya"
    " le la les des du et ou à au aux un une est avec dans il lo gli di ed che do da dos das e o em um uma"
    " het een de en van ook zijn där och i som"
    " который которая которое которые также там где оба"
)
JOINING = words(_JOINING_WORDS)
"""Words that a summary may bring, to join what it says."""
WIDE_JOINING = frozenset("并且同时以及而和与也都其为是于所名叫有她他他们年岁歳来又等")

_MAYBE = re.compile(
    r"\b(?:may|might|could|would|should|will|wants?|wish\w*|hop(?:es?|ing)|plan(?:s|ning)?|consider\w*|think\w*|perhaps"
    r"|maybe|possibly|probably|sometimes|occasionally|only|if|unless|tr(?:y|ies|ying)|intend\w*|going to|about to"
    r"|vielleicht|möchte|will|würde|plant|manchmal|nur|wenn|quizás?|tal vez|quiere|planea|a veces|si"
    r"|может|возможно|хочет|планирует|иногда|только|если|собирается|ربما|يريد|تريد)\b"
    r"|也许|可能|想|打算|计划|偶尔|只|如果|かも|たい|予定|たまに|だけ|もし|싶|예정|가끔|만약",
    re.IGNORECASE,
)


def is_uncertain(text: str) -> bool:
    """Whether the text says that something may, will or only sometimes be so."""
    return _MAYBE.search(text) is not None


HAN_NUMBERS = frozenset("〇零一二三四五六七八九十百千万萬億亿两兩")
WIDE_EMPTY = frozenset("的了是在也我他她它们吗呢着のはがをにでとも、・这那个")
WIDE_FRAMES = re.compile(
    r"用户的?|使用者的?|ユーザーの?|利用者の?|사용자(?:는|의|가)?|目前|现在|并且|而且|此外|還有|还有|また|そして"
)
WIDE_CLASSES = re.compile(r"喜欢|喜爱|喜愛|热爱|爱好|爱|大好き|好き|好む|名叫|叫做|名为|叫|という名前の|という|拥有|有")
_WIDE_SAME = {
    "喜欢": "like",
    "喜爱": "like",
    "喜愛": "like",
    "热爱": "like",
    "爱好": "like",
    "爱": "like",
    "大好き": "like",
    "好き": "like",
    "好む": "like",
    "拥有": "own",
    "有": "own",
}


def wide_class(word: str) -> str:
    """What a word of ``WIDE_CLASSES`` says."""
    return _WIDE_SAME.get(word, "call")


_KOREAN_ENDING = re.compile(
    r"(?<=.)(?:이라는|라는|입니다|합니다|습니다|에서는|에서|에게|으로|까지|부터|이다|한다|했다|하다|하고|하며|는다|은|는|이|가|을|를"
    r"|에|의|도|로|와|과|만|다|요|며|고)$"
)


def korean_stem(word: str) -> str:
    """The word without one particle or ending."""
    return _KOREAN_ENDING.sub("", word)
