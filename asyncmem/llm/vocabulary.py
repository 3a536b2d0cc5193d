"""The words that providers' own sentences are made of: shown in our errors, though a prompt may use them too."""

import re

_WORDS = """
a about above accept accepted accepts access account action active add added additional address adjust again all allow
allowed allows already also amazon an and another anthropic any api are argument arguments array as assistant at
attempt auth authentication authorization auto available aws azure back bad balance base be bearer because bedrock
been before begin being below beta between billing blocked bodies body bool boolean both bound budget but by byte
bytes call called calls can cannot capacity change character characters chat check choice choices choose class client
cloud code cohere column completion completions config configuration configure configured connect connection const
contain contained contains content context cost could count cpp create created credential credentials credit credits
ctx current currently data deadline decode deepseek default defs delete deployed deployment deprecated deprecation
describe deserialize detail details developer dict did dimension dimensions directly disable disabled do documentation
does doesn don done drop due during each effort either embedding embeddings empty enable enabled encode encoding end
endpoint endpoints engine enough entity enum err error errors exc exceed exceeded exceeds except exception execution
exist exists expect expected expecting expired extra extras fail failed failure false feature features field fields
file filter filtered find fireworks first float following for forbidden form format formatted found freq from full
function functions further gateway gemini generate generated generation get given google grammar greater groq group
guardrail guide guided h1 had handle has have head header help host hosted hour how however html http https
huggingface id ids if ignore image implemented in incorrect index inference info information initialize input inputs
insert instance instead instruction instructions insufficient int integer internal into invalid is isn issue it item
items its json key keys keyword kind known large last later latest learn least leave length less library limit limited
limits line list lite litellm llama llm lm loaded loading loc local location long longer lower made make management
many max maximum may message messages method mime min minimum minute missing mistral mode model models moment more
most ms msg multiple must name names need needed needs nested network new next nginx nim no none not now null num
number nvidia object occurred of off ok ollama on once one only openai openrouter operation option optional options or
org organization origin other our out output outputs over overloaded own package page parallel param parameter
parameters params parse parsed parser parsing part path pattern pay payload payment penalty per period permission
permissions permitted place plan please policy position post pre predict presence preview privacy problem process
processed processing project prompt prompts properties property provide provided provider providers proxy python quota
raise raised range rate raw reach reached read reason reasoning receive received reduce ref refer reference refuse
refused regex region registry reject rejected remove removed replace replicate request requested requests require
required requires reset resource response responses result resulted results retry return returned role root route
routing safety sagemaker same schema schemas sdk second seconds secret see seed send sent server servers service
session set setting settings setup sglang should size slow some sorry specified specify standard start status stop str
stream strict string structure structured studio such support supported supporting supports syntax system target
temperature temporarily temporary text tgi than that the their them then there these they this those through
throughput time timed timeout times title to together token tokens too tool tools top total triggering true try type
types unable unauthorized unavailable unexpected unique unknown unprocessable unrecognized unset unsupported until up
update upgrade upstream url usage use used user uses using utf valid validate validated validation validator value
values variant verify version versions vertex vertexai via visit vllm wait was way we were when where whether which
while will with within without word would wrong xai xgrammar you your yours
"""
STANDARD: frozenset[str] = frozenset(_WORDS.split())

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_STATUS = re.compile(r"200|4[0-2]\d|50[0-4]|529")


def is_standard(word: str) -> bool:
    """Whether a word is one that providers use themselves, in any case, also as part of a name such as ``max_tokens``.

    Numbers are not, HTTP statuses apart.
    """
    if word.casefold() in STANDARD:
        return True
    parts = _PART.findall(word)
    return sum(map(len, parts)) == len(word.replace("_", "")) > 0 and all(
        part.casefold() in STANDARD or _STATUS.fullmatch(part) for part in parts
    )
