"""The wordings by which a text instructs a model, in ten languages, as RE2 patterns.

A `sure` wording counts alone. A `weak` one stands in ordinary manuals, too, and counts only beside
a weak one of another kind. `instructions.py` decides whether a wording is used or only quoted.
"""

# One wording a line: a wrapped one is harder to check than a long one. Scripts are what is sought.
# ruff: noqa: E501, RUF001

from __future__ import annotations

from guardrail_service.text.patterns.search import Pattern

Wordings = tuple[tuple[str, str], ...]
"""Texts of which every match holds one, between bars, and the pattern."""
_SHORT = 2
_RULES_KEYS = "instruction|prompt|direct|command|rules|guideline|guardrail|programming|training|constraint|restriction"
_AI_KEYS = "ai|a.i|llm|language model|language-model|chatbot|chat bot|chatgpt|gpt|copilot|gemini|claude|engine|assistant|model"
_PLAIN_KEYS = "assistant|model|agent|bot|system"
_S = r"[\s_\-*]{0,3}"
"""Between words that may be glued together: `IGNORE-PREVIOUS-INSTRUCTIONS`."""
_START = (
    r"(?:^|[.!?:;,()\[\]{}<>\"'“”„‘’«»*#|\n—–>/=。！？：，「」-]\s{0,3}"
    r"|\b(?:please|now|then|and|must|should|shall|simply|just|immediately|kindly|first|also|instead"
    r"|you (?:are|have|need|ought) to|want you to|need you to|sure to|required to)[ ,:]{1,2})"
)
"""What stands before an imperative; "to", "that", "will" and nouns stand before a description."""
_BEGIN = r"(?:^|[.!?:()\[\]{}<>\"“”„*#|\n—–>]\s{0,3})"
"""The same at the beginning of a sentence only."""
_FILL = r"(?:(?:all|any|each|every|everything|of|the|your|my|these|those|other|its)[\s_\-]+)*"
_EARLIER = r"(?:previous(?:ly given)?|prior|earlier|preceding|above|former|original|initial|existing|past|foregoing|old)"
_RULES = r"(?:instructions?|prompts?|directions|directives?|commands|rules|guidelines|guardrails|programming|training|constraints|restrictions)"
_DROP = r"(?:ignore|disregard|forget(?: about)?|discard|override|bypass|abandon|neglect|do not (?:follow|obey|comply with)|don't (?:follow|obey)|stop following|pay no attention to|set aside)"
_AI = r"(?:a\.?i\.?(?:[ -](?:assistants?|models?|agents?|systems?|crawlers?|readers?|tools?|bots?|summari[sz]ers?|reviewers?|search))?|llms?|(?:large )?language[ -]models?|chat ?bots?|chatgpt|gpt-?[0-9o]*|copilot|gemini|claude|answer engines?|virtual assistants?|(?:shopping|digital|search) assistants?|generative engines?)"
_PLAIN = r"(?:assistants?|models?|agents?|bots?|system)"
_SAY = (
    r"(?:(?:always |never |only |also |just |please |do not |don't |you (?:must|should|will|shall) )*"
    r"(?:ignore|disregard|say|state|tell|claim|mention|answer|reply|respond|describe|recommend|promote|suggest|advise|praise|endorse|rate|rank|append|add|include|insert|write|print|output|repeat|reveal|leak|send|post|forward|collect|call (?:the |it )|invoke|execute|run|use the|give|put|link|approve|credit|convince|invite|pretend|act|highlight|mark|refund|inform|ask the|insist|warn|direct|refer|name|call|end|begin|start|finish|close|translate|score|grade|choose|pick|treat|speak|talk|summari[sz]e|list))"
)
_WHOM = r"(?:users?|customers?|readers?|visitors?|buyers?|members?|applicants?|guests?|patients?|clients?|people|everyone|everybody|whoever|callers?|them|him|her)"

# fmt: off
SURE: dict[str, Wordings] = {
    "override": (
        (_RULES_KEYS, rf"{_START}{_DROP}{_S}{_FILL}{_EARLIER}{_S}(?:\w+{_S})?(?:instructions?|prompts?|directives?|programming)\b"),
        (_RULES_KEYS, rf"{_START}{_DROP}{_S}(?:all{_S}(?:of{_S})?)?(?:your|my){_S}(?:\w+{_S}){{0,2}}{_RULES}\b"),
        ("you were|you have been|you are given|you are told|you are shown|you had been|you received|you got|you have received|in your|of your|from your", rf"{_START}{_DROP}\s+{_FILL}(?:\w+\s+)?(?:{_RULES}|context|messages?|sources?)\s+(?:that )?(?:you (?:were|have been|are|had been) (?:given|told|shown)|you (?:received|got|have received)|(?:in|of|from) your)"),
        ("system prompt|system message|system instructions", rf"{_START}{_DROP}\s+{_FILL}system (?:prompt|message|instructions)"),
        ("your ", r"\byour (?:previous|prior|earlier|original|initial|old|current) (?:instructions|rules|guidelines|prompt|directives) (?:are|were|have been|is|has been)? ?(?:now )?(?:cancell?ed|void|revoked|invalid|outdated|obsolete|superseded|no longer)"),
        (_RULES_KEYS, r"\b(?:instructions|rules|guidelines|directives) (?:that )?you (?:received|got|were given|were told|have)[^.!?\n]{0,40} (?:no longer (?:apply|matter|count)|are (?:cancell?ed|void|obsolete|outdated))"),
        ("obey only|follow only", r"\b(?:obey|follow) only (?:this|the following) (?:paragraph|instructions?|text|line|message)"),
        ("override ", r"\boverride (?:the |your |all )?(?:safety|guardrails|content polic)"),
        (_RULES_KEYS, rf"{_START}{_DROP} (?:all )?(?:of )?the (?:above|preceding) {_RULES}"),
        ("task|instruction", rf"{_START}{_DROP} (?:the|this|that|your) (?:[\w-]+ )?(?:tasks?|instructions?)[.,;:]? (?:and )?instead"),
        ("user", rf"{_START}{_DROP} (?:the |what the )?user(?:'s)? (?:orders?|requests?|questions?|query|task|input|asked|wants)"),
        ("instruction", rf"{_BEGIN}new (?:developer|system|admin) instructions?\s*:"),
        # German
        ("anweisung|instruktion|regel|vorgabe|befehl|prompt|weisung|richtlinie", r"(?:ignorier(?:e|en sie|t)?|vergiss|vergessen sie|missachte(?:n sie)?|verwirf|übergehe)\s+(?:bitte\s+)?(?:(?:alle|die|deine|ihre|sämtliche|eure)\s+)*(?:vorherigen?|bisherigen?|vorigen?|obigen?|früheren?|vorangegangenen?|vorangehenden?|ursprünglichen?|oben genannten)\s+(?:anweisung|instruktion|regel|vorgabe|befehl|prompt|weisung|richtlinie)"),
        ("anweisung|instruktion|regel|vorgabe", r"(?:ignorier(?:e|en sie)|vergiss|vergessen sie)\s+(?:alle\s+)?(?:deine|ihre)\s+(?:anweisungen|instruktionen|regeln|vorgaben|systemanweisung)"),
        # French
        ("instruction|consigne|directive|règle", r"(?:ignore[zr]?|oublie[zr]?|néglige[zr]?|ne (?:tiens|tenez) (?:pas|aucun) compte (?:de|des))\s+(?:toutes\s+)?(?:(?:les|tes|vos|ces)\s+)?(?:instructions|consignes|directives|règles)\s+(?:qui précèdent|précédentes|antérieures|ci-dessus|initiales|reçues|données)"),
        # Spanish
        ("instrucciones|órdenes|reglas|indicaciones|directrices", r"(?:ignora|ignore|ignorad|olvida|olvide|olvidad|descarta|descarte|omite|omita|haz caso omiso de|desestima)\s+(?:todas\s+)?(?:(?:las|tus|sus)\s+)?(?:instrucciones|órdenes|reglas|indicaciones|directrices)\s+(?:anteriores|previas|de arriba|originales|iniciales|recibidas)"),
        # Italian
        ("istruzioni|indicazioni|regole|direttive", r"(?:ignora|ignorate|ignori|dimentica|dimenticate|trascura|tralascia)\s+(?:tutte\s+)?(?:le\s+)?(?:(?:tue|vostre|sue)\s+)?(?:istruzioni|indicazioni|regole|direttive)\s+(?:precedenti|sopra|di cui sopra|iniziali|originali|ricevute)"),
        # Portuguese
        ("instruções|ordens|regras|orientações|diretrizes", r"(?:ignore|ignora|esqueça|esquece|desconsidere|descarte)\s+(?:todas\s+)?(?:as\s+)?(?:suas\s+)?(?:instruções|ordens|regras|orientações|diretrizes)\s+(?:anteriores|prévias|acima|originais|iniciais|recebidas)"),
        # Dutch
        ("negeer|vergeet", r"(?:negeer|vergeet)\s+(?:(?:alle|al|je|jouw|uw|de)\s+)*(?:eerdere|vorige|voorgaande|bovenstaande|voorafgaande|oorspronkelijke)\s+(?:instructies|opdrachten|aanwijzingen|regels|richtlijnen|prompts)"),
        # Polish
        ("ignoruj|zapomnij|pomiń|odrzuć", r"(?:zignoruj|ignoruj|zapomnij(?: o)?|pomiń|odrzuć)(?:cie)?\s+(?:(?:wszystkie|wszystkich|swoje|swoich|o)\s+)*(?:poprzednie|poprzednich|wcześniejsze|wcześniejszych|powyższe|powyższych|dotychczasowe)\s+(?:instrukcj|polece|zasad|wytyczn|komend)"),
        # Chinese and Japanese
        ("忽略|无视|忘记|忘掉|不要理会|不要遵守|抛弃|不理会|無視|忽視", r"(?:忽略|无视|忘记|忘掉|不要理会|不要遵守|抛弃|不理会|無視|忽視)(?:掉)?(?:你)?(?:在)?(?:之前|以上|先前|前面|上面|此前|所有|全部|一切)(?:的|所有|全部|一切|收到|给出|之前|以上|先前|你){0,4}(?:指令|指示|提示词|提示|命令|规则|规定|要求|設定|设定)"),
        ("無視|忘れ|破棄", r"(?:これまで|以前|上記|前|今まで|先ほど|以上|過去)の(?:すべての|全ての|全|あらゆる)?(?:指示|命令|プロンプト|ルール|指令|制約)(?:を|は)?(?:すべて|全て|全部|一切)?(?:無視|忘れ|破棄)"),
    ),
    "role": (
        ("you are ", r"\byou are (?:now|henceforth|no longer|from now on)[^.!?\n]{0,50}\b(?:ai|assistant|language model|chatbot|bot|dan|gpt|freegpt|unrestricted|unfiltered|uncensored|jailbroken|evil|(?:free|freed) (?:of|from) (?:all |any |your )?(?:\w+ )?(?:rules|restrictions|laws|limits|guidelines)|in (?:\w+ )?mode|bound by|pirate|hacker)\b"),
        ("from now|from here|from this", r"\bfrom (?:now|here|this point|this moment) on(?:wards?)?,?\s+(?:you (?:will |must |shall |should |are to |only |always )*(?:act|answer|respond|reply|behave|speak|talk|pretend|obey|play)\b|(?:always )?(?:answer|respond|reply|act|behave|speak|obey)\b|you are (?:an?|the) (?:[\w-]+ ){0,3}(?:ai|assistant|bot|pirate|model|chatbot|persona|character|seller|salesman|salesperson))"),
        ("you are|you were|you have", rf"{_BEGIN}(?:pretend|imagine|act as if|act as though|role-?play as if|suppose)(?: that)? you (?:are|were|have)[^.!?\n]{{2,90}} and (?:promise|approve|confirm|grant|authori[sz]e|guarantee|admit|assure|offer|say|tell|answer|reply|reveal)\b"),
        ("act as ", rf"{_START}act as (?:an? )?(?:unrestricted|unfiltered|uncensored|evil|jailbroken|dan\b|amoral)"),
        (" mode", r"\b(?:enter|enable|activate|switch (?:to|into)|turn on) (?:the )?(?:dan|jailbreak|god|unrestricted|unfiltered|uncensored|do-anything) mode"),
        (" apply to you", r"\b(?:content polic(?:y|ies)|safety (?:rules|policies|filters?)|filters|guidelines) (?:do|does) not apply to you"),
        (" bound by ", r"\byou (?:are|'re) (?:not|no longer) bound by (?:any |your |the )"),
        ("no rule|no restriction|no limit|no filter|no guideline", rf"{_BEGIN}(?:pretend|imagine|act as if)(?: that)? you (?:are|were) [^.!?\n]{{2,60}} (?:who|that|which|with) (?:(?:has|have) )?no (?:rules|restrictions|limits|filters|guidelines)"),
        # Other languages
        ("du bist|sie sind", r"\b(?:du bist|sie sind) (?:jetzt|nun|ab jetzt|ab sofort|von nun an|fortan|nicht mehr) [^.!?\n]{0,40}(?:\bki\b|assistent|sprachmodell|chatbot|\bdan\b|ohne (?:\w+ )?(?:regeln|einschränkungen|grenzen))"),
        ("tu es|vous êtes", r"\b(?:tu es|vous êtes) (?:désormais|maintenant|dorénavant|à présent) [^.!?\n]{0,40}(?:\bia\b|assistant|modèle|chatbot|\bdan\b|sans (?:aucune )?(?:règle|limite|restriction))"),
        ("eres|actúas|actúa|serás", r"\b(?:ahora|a partir de ahora|desde ahora),? (?:eres|actúas como|actúa como|serás) [^.!?\n]{0,40}(?:\bia\b|asistente|modelo|chatbot|\bdan\b|sin (?:ninguna )?(?:reglas?|restricci|límites?))"),
        ("sei |siete|agisci|agirai", r"\b(?:ora|adesso|d'ora in poi|da ora in poi),? (?:sei|siete|agisci come|agirai come) [^.!?\n]{0,40}(?:\bia\b|assistente|modello|chatbot|\bdan\b|senza (?:alcuna |alcun )?(?:regol|restrizion|limit))"),
        ("você|tu és| és |aja como", r"\b(?:agora|a partir de agora|de agora em diante),? (?:você é|tu és|és|você será|aja como) [^.!?\n]{0,60}(?:\bia\b|assistente|modelo|chatbot|\bdan\b|sem (?:nenhuma )?(?:regras?|restriç|limites?)| e (?:deve|vai|tem de) (?:escrever|responder|dizer|recomendar))"),
        ("je bent|u bent", r"\b(?:je bent|u bent) (?:nu|voortaan|vanaf nu) [^.!?\n]{0,40}(?:\bai\b|assistent|taalmodel|chatbot|zonder (?:enige )?(?:regels|beperkingen|grenzen))"),
        ("jesteś", r"\b(?:jesteś teraz|od teraz jesteś|od tej chwili jesteś) [^.!?\n]{0,40}(?:\bai\b|asystent|model|chatbot|bez (?:żadnych )?(?:zasad|ograniczeń|reguł))"),
        ("你", r"(?:你现在是|从现在(?:起|开始)，?你(?:是|将)|你不再是)[^。！？\n]{0,20}(?:助手|模型|AI|机器人|没有任何(?:限制|规则))"),
        ("あなたは", r"(?:あなたは(?:今から|これから|今|現在|もう|もはや)|これからあなたは|今後あなたは)[^。！？\n]{0,24}(?:AI|アシスタント|モデル|ボット|制限(?:の|が)ない)"),
    ),
    "prompt_leak": (
        ("your ", rf"{_START}(?:print|reveal|repeat|show|output|display|disclose|write(?: out)?|convert|translate|encode|summari[sz]e|recite|expose|share|quote|leak|give)\b[^.!?\n]{{0,30}}\byour (?:\w+ )?(?:system|initial|hidden|original|secret|internal|developer|base|full|entire) (?:prompt|instructions?|message|rules|guidelines)"),
        ("above|before", rf"{_START}(?:output|print|repeat|recite)\b[^.!?\n]{{0,40}}\b(?:everything|all (?:the )?text|the words|the text) (?:above|before)"),
        ("you must|you have|you were|you follow|you are", rf"{_START}(?:list|reveal|print|state|repeat|show) (?:all )?(?:of )?(?:the )?(?:rules|instructions|tools|functions) (?:that )?you (?:must|have|were|follow|are)\b"),
        ("what were you told", r"\bwhat were you told at the (?:start|beginning)\b"),
        ("prompt|anweisung", r"(?:gib|geben sie|zeig|zeige|zeigen sie|wiederhole|verrate|nenne)\s+(?:mir\s+)?(?:deinen?|ihren?|deine|ihre)\s+(?:system-?prompt|systemanweisung|geheimen anweisungen|ursprünglichen anweisungen)"),
        ("prompt|instruction|système", r"(?:affiche|révèle|montre|répète|donne|divulgue)[rz]?(?:-moi)?\s+(?:ton|votre|tes|vos)\s+(?:prompt|instructions? (?:système|secrètes|initiales)|message système|consignes système)"),
        ("prompt|instrucciones|sistema", r"(?:muestra|muestre|revela|revele|imprime|repite|enseña|escribe|dime)\s+(?:tu|tus|su|sus)\s+(?:prompt|instrucciones (?:del sistema|ocultas|iniciales)|mensaje del sistema)"),
        ("prompt|istruzioni", r"(?:mostra|rivela|stampa|ripeti|scrivi|dimmi)\s+(?:il tuo|le tue)\s+(?:prompt|istruzioni (?:di sistema|nascoste|iniziali))"),
        ("prompt|instruções", r"(?:mostre|revele|imprima|repita|exiba|escreva)\s+(?:o seu|seu|as suas|suas)\s+(?:prompt|instruções (?:do sistema|ocultas|iniciais))"),
        ("systeem|instructies", r"(?:toon|onthul|geef|herhaal|druk)\s+(?:mij\s+)?(?:je|jouw|uw)\s+(?:systeemprompt|systeeminstructies|verborgen instructies)"),
        ("prompt|instrukcje", r"(?:ujawnij|pokaż|wypisz|wyświetl|powtórz|podaj)\s+(?:swój|swoje|twój)\s+(?:prompt|instrukcje systemowe|ukryte instrukcje)"),
        ("提示|指令", r"(?:输出|显示|告诉我|泄露|打印|重复|透露|公开|说出)(?:一下)?(?:你的|您的)?(?:完整的?|全部|原始)?(?:系统提示词?|系统指令|系统提示|初始提示词?|隐藏指令)"),
        ("プロンプト|隠された指示", r"(?:システムプロンプト|初期プロンプト|隠された指示)(?:を|の内容を)[^。\n]{0,12}(?:出力|表示|教え|公開|開示|書い|見せ)"),
    ),
    "to_model": (
        (_AI_KEYS, rf"{_BEGIN}(?:hey|hi|hello|dear|attention|note(?:s)? (?:to|for)|notice (?:to|for)|message (?:to|for)|instructions? (?:to|for)|important (?:note )?(?:for|to)|reminder (?:to|for)|to|for|begin instructions for)\s*:?\s*(?:the |any |all |an? |every |our |your )?(?:{_AI}|assistants?|models?)(?:\s[^.!?\n:,]{{0,40}})?[:,)\-–—]?\s+(?:{_SAY}|(?:when(?:ever)?|if) (?:a |the |any )?(?:{_WHOM}|somebody|someone|anyone|asked)\b)"),
        (_AI_KEYS, rf"{_BEGIN}(?:hey|hi|hello|dear|attention),? (?:the |any |all )?(?:(?:grader|grading|review|reviewer|scoring|summary|support|helpful) )?(?:{_AI}|assistant|model|bot|grader)s?[,:)!]"),
        (_AI_KEYS, rf"{_BEGIN}(?:all |any |every )?{_AI} (?:that|which|who) [^.!?\n]{{1,60}} (?:must|should|shall|have to|has to|need to|needs to|are to|is to|are asked to|are requested to)\b"),
        (_AI_KEYS, rf"{_BEGIN}(?:instructions?|notes?|notice|message|reminder) (?:to|for) (?:the |any |all |an? |every |our |your )?(?:{_AI}|assistants?|models?)\s*[:,)\-–—]\s+(?:before|after|while|as soon as|in every|in each|with every|at the end)\b"),
        ("{{", r"\{\{\s*(?:system|assistant|ai|llm|model|bot)[\w -]{0,20}[:=]"),
        ("automated|automatic|ai |artificial|machine|language model", r"\b(?:when|whenever|if|should) (?:an?|the|any) (?:automated|automatic|ai|artificial|machine|language model)[ -](?:reviewer|reader|assistant|system|summari[sz]er|agent|tool|grader|checker|model|bot)s?\b[^.!?\n]{0,60},? (?:it|they) (?:should|must|shall|has to|have to|is to|are to|will)\b"),
        ("answer|repl|response", rf"{_START}(?:end|begin|start|finish|close|conclude) (?:each|every|all(?: of)? your|your|any) (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?) with (?:the|this|these)\b"),
        (_AI_KEYS, rf"{_BEGIN}(?:@|ok )?(?:{_AI})(?: (?:reading|processing|parsing|summari[sz]ing|grading) (?:this|these)[^.!?\n:,]{{0,20}}| instructions?| note)?\s*[:,]\s+(?:{_SAY}|when(?:ever)?\b|if (?:a|the|any|some))"),
        (_PLAIN_KEYS, rf"{_BEGIN}(?:@)?{_PLAIN}(?: (?:reading|processing|parsing|summari[sz]ing) (?:this|these)[^.!?\n:,]{{0,20}}| instructions?| note| override)?\s*[:,]\s+(?:please )?(?:ignore|disregard|from now on|respond (?:in|with|only|that)|reply (?:with|only|that)|answer (?:with|only|that|every|all)|(?:say|state|claim|mention|tell (?:the |all |every )?{_WHOM})\b|recommend|promote|append|add that|do not (?:mention|tell|say|answer)|call the tool|call the function|invoke|execute|(?:end|begin|start|finish|close) (?:each|every|all|your|any) (?:\w+ )?(?:answer|repl|response|message)|translate (?:everything|all|your)|(?:speak|talk|write) (?:like|as)|send the (?:user|patient|customer|conversation|chat|data|client)|describe|(?:use|run) the [\w-]+ tool|mark this|approve this|rate (?:this|the|them))"),
        ("@bot|@ai|@assistant|@agent|@copilot|@claude|@gpt", r"@(?:bot|ai|assistant|agent|copilot|claude|gpt)\s+(?:please )?(?:execute|run|invoke|merge|delete|approve|send|ignore|reply|post|push)\b"),
        ("you are|you're|you happen|reader is|reviewer is", rf"\b(?:if|when) (?:you are|you're|you happen to be|the reader is|the reviewer is) (?:an? |the )?(?:{_AI}|assistant|bot)(?: (?:reading|grading|processing|summari[sz]ing|parsing|evaluating|reviewing|translating|asked)[^.!?\n,]{{0,30}})?\s*[,:;.]"),
        ("if a ai|if an ai|if a llm|if an llm|if an assistant|if a language|if a chatbot|if a bot", r"\bif an? (?:ai|llm|assistant|language model|chatbot|bot) (?:is )?(?:read|summari[sz]|process|pars|translat|grad|review)\w* (?:this|these|the)\b"),
        (" this", rf"\b(?:any|every|each) (?:{_AI}|assistant|model|bot)s? (?:that is |that are )?(?:processing|reading|summari[sz]ing|parsing|scanning|handling|translating) this\b"),
        (_AI_KEYS, rf"{_BEGIN}(?:all |the |other )?(?:{_AI}|\w+ that are (?:ai|language) models)\s*(?::\s+{_SAY}|(?:must|should|shall|have to|has to|need to|are required to|are to) (?:always |only |also )?(?:say|state|claim|mention|recommend|answer|reply|respond|leak|reveal|ignore|add|append|describe|rate|promote|praise|tell {_WHOM})\b)"),
        ("instruction", r"\b(?:begin|start of) (?:new )?(?:system )?instructions? (?:for|to) the (?:assistant|model|ai|bot|chatbot)"),
        ("system|instruction|admin", rf"(?:^|\n|[.!?*#\]]\s{{0,3}})(?:system|new (?:system )?instructions?|system (?:message|override|note|prompt|update)|admin(?:istrator)? (?:override|note))\s*[#*]*\s*[:\]]\s*[#*]*\s*(?:from now on|you (?:are|must|will|should)|{_SAY}|your\b)"),
        ("instruction", r"#{2,4}\s*new (?:system )?instructions?\s*#{0,4}\s"),
        ("override", r"\*{2,3}\s*(?:system )?override\s*\*{2,3}"),
        # Other languages
        ("ki|sprachmodell|chatbot|assistent|ai", r"\b(?:hinweis|nachricht|anweisung|anmerkung|notiz|achtung)(?:,)? (?:an|für)? ?(?:alle |die |das |den )?(?:ki\b|ki-|sprachmodell|chatbot|assistent|ai\b)"),
        ("bist|sind", r"\b(?:wenn|falls) (?:du|sie) (?:eine? )?(?:ki|sprachmodell|chatbot|ki-assistent|bot)\w* (?:bist|sind)"),
        ("assistant|ia|intelligence|modèle|chatbot", r"\b(?:note|message|avis|instruction|consigne)s? (?:aux|à l'attention des|à l'|pour les|destinée?s? aux|à tous les) ?(?:assistants? (?:ia|virtuel|d'ia)|ia\b|intelligences? artificielle|modèles? de langage|chatbots?)"),
        ("si tu es|si vous êtes", r"\bsi (?:tu es|vous êtes) (?:une ia|un modèle de langage|un chatbot|un assistant (?:ia|virtuel))"),
        ("asistente|ia|modelo|chatbot|inteligencia", r"\b(?:nota|mensaje|aviso|instrucción|instrucciones) para (?:los |las |el |la |todos los |cualquier )?(?:asistentes? (?:de ia|virtual)|ia\b|modelos? de lenguaje|chatbots?|inteligencias? artificial)"),
        ("si eres", r"\bsi eres (?:una ia|un modelo de lenguaje|un chatbot|un asistente (?:de ia|virtual))"),
        ("modelli|assistenti|ia|chatbot|intelligenz", r"\b(?:nota|messaggio|avviso|istruzion[ei]) (?:per|a|agli|ai) ?(?:i |gli |le |l'|tutti i )?(?:modelli linguistici|assistenti (?:ia|virtuali|ai)|ia\b|chatbot|intelligenz[ae] artificial)"),
        ("se sei", r"\bse sei (?:un'ia|un modello linguistico|un chatbot|un assistente (?:ia|virtuale))"),
        ("assistente|ia|modelo|chatbot", r"\b(?:nota|mensagem|aviso|instruç(?:ão|ões)) (?:para|a) (?:os |as |o |a |todos os )?(?:assistentes? (?:de ia|virtua)|ia\b|modelos? de linguagem|chatbots?)"),
        ("se você|se és|se tu", r"\bse (?:você é|és|tu és) (?:uma ia|um modelo de linguagem|um chatbot|um assistente (?:de ia|virtual))"),
        ("ai|taalmodel|chatbot|assistent", r"\b(?:bericht|opmerking|instructie|let op|notitie) (?:voor|aan) (?:alle |de |elke )?(?:ai\b|ai-|taalmodel|chatbot|assistent)"),
        ("als je een|als u een", r"\bals (?:je|u) een (?:ai|taalmodel|chatbot|ai-assistent) (?:bent|leest)"),
        (" dla ", r"\b(?:uwaga|wiadomość|instrukcja|notatka|polecenie) dla (?:wszystkich )?(?:asystent(?:ów|a) ai|modeli językowych|chatbotów|ai\b|sztucznej)"),
        ("jeśli jesteś", r"\bjeśli jesteś (?:modelem językowym|sztuczną inteligencją|chatbotem|asystentem ai)"),
        ("ai|人工智能|模型|助手|聊天机器人", r"(?:致|给|写给|请)(?:所有|各位|阅读本文的)?(?:AI|人工智能|大模型|语言模型|智能助手|聊天机器人)(?:助手|模型|系统)?(?:的(?:说明|指令|注意|提示))?[：:，,]"),
        ("你是", r"(?:如果|若)你是(?:一个|一名)?(?:AI|人工智能|大模型|语言模型|智能助手|聊天机器人)"),
        ("ai|人工知能|モデル|チャットボット|アシスタント", r"(?:AI|人工知能|言語モデル|チャットボット|アシスタント)(?:アシスタント|モデル)?(?:へ|向け|宛て)(?:の)?(?:指示|注意|お願い|メモ|お知らせ)?[：:、]"),
        ("あなたが", r"(?:もし)?あなたが(?:AI|人工知能|言語モデル|チャットボット)(?:なら|であれば|の場合)"),
    ),
    "exfiltration": (
        ("](", r"!\[[^\]\n]{0,60}\]\(https?://[^)\s]{0,200}[?&=/](?:conversation|secret|data|history|question|user_?data|chat|\{[^}\s]{1,40}\}|\[[^\]\s]{1,40}\]|<[^>\s]{1,40}>)\b?[^)\s]{0,40}\)[^.!?\n]{0,60}(?:in|to|at the end of) (?:your|the|every|each) (?:reply|answer|response|output)"),
        ("conversation|chat history|chat log", r"\b(?:append|send|post|encode|add|leak|attach|forward)\b[^.!?\n]{0,30}\b(?:the |this )?(?:full |whole |entire |complete )?(?:conversation|chat history|chat log)\b[^.!?\n]{0,60}(?:https?://|[\w.+-]+@[\w-]+\.)"),
        ("user's ", r"\breplace [A-Z_\[\]{}]{3,30} with (?:the )?user'?s\b"),
    ),
    "tool_order": (
        ("without ", r"\b(?:call|invoke|use|run|execute)\b (?:the )?(?:tool |function )?[a-z]+_[a-z_]+(?:\(\))?[^.!?\n]{0,80}\bwithout (?:asking|confirm|telling|approval)"),
    ),
    "template": (
        ("im_start|im_end|endoftext|eot_id|header_id|system|user|assistant", r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>"),
        ("inst]|sys>>|_of_turn>", r"\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"),
        ("tool_|function_call|invoke name", r"</?(?:tool_call|function_calls?|tool_use|tool_result|invoke name=)[^>\n]{0,60}>?"),
        ("##", r"(?:^|\n)#{2,3} ?(?:instruction|system|system prompt|response):? *\n"),
        ("human: |user: ", r"\n\s*\n(?:human|user): [^\n]{1,400}\n+(?:assistant|ai):\s*$"),
    ),
    "hidden": (
        ("<!--", r"<!--[^<>]{0,40}\b(?:ai|llm|assistant|chatbot|language model|chatgpt|copilot|bot)s?\b[^<>]{0,400}"),
        ("<!--", rf"<!--[^<>]{{0,200}}\b(?:tell|inform|convince) (?:the |all |every )?{_WHOM}\b[^<>]{{0,300}}"),
        ("display:|visibility:|font-size:|color:|opacity:| hidden", rf"(?:display:\s*none|visibility:\s*hidden|font-size:\s*[01](?:px|pt|em)?\b|color:\s*(?:white|#fff\b|#ffffff|transparent)|opacity:\s*0\b|<\w+ hidden\b)[^<>]{{0,60}}>[^<>]{{0,200}}(?:\b(?:tell|inform) (?:the |all |every )?{_WHOM}\b|\b{_AI}\b|\b(?:assistants?|models?) (?:must|should)|\b(?:recommend|describe|ignore|override|respond|reply)\b)[^<>]{{0,200}}"),
        ("text]", rf"\[(?:white|hidden|invisible|tiny) text\]\s*(?:when (?:asked|somebody|someone)[^.!?\n]{{0,60}},\s*)?{_SAY}[^\n\[]{{0,200}}"),
        ("[//]", r"\[//\]: # \([^)\n]{0,40}\b(?:ai|llm|assistant|chatbot|model|bot)s?\b[^)\n]{0,300}\)"),
    ),
}
"""By kind. `_START` and its like stand before some of them, so a match may begin a little early."""

WEAK: dict[str, Wordings] = {
    "override": (
        (_RULES_KEYS + "|other sources", rf"{_START}{_DROP}\s+{_FILL}(?:{_EARLIER}\s+(?:\w+\s+)?{_RULES}|{_RULES}\s+above|other sources)\b"),
        ("above|before|earlier", rf"{_START}{_DROP}\s+(?:everything|all of the|anything|all) (?:above|before|earlier)\b"),
        ("nothing before|nothing above", r"\bnothing (?:before|above) this (?:paragraph|line|point|text)"),
    ),
    "role": (
        ("you are|you were|you have", rf"{_BEGIN}(?:pretend|imagine|act as if|act as though|role-?play)(?: that)? you (?:are|were|have)"),
        (" mode", r"\b(?:enter|enable|activate|switch (?:to|into)|you are in) (?:the )?(?:developer|debug|maintenance|admin|root) mode"),
    ),
    "exfiltration": (
        ("api key|credential|password|mail address|user's |context", r"\b(?:send|post|forward|upload|transmit|e-?mail|collect|write)\b[^.!?\n]{0,40}\b(?:api keys?|credentials|passwords?|e-?mail addresses|user's (?:\w+ )?(?:question|data|name|e-?mail|address|password|token|message|query)|context)\b[^.!?\n]{0,80}(?:https?://|[\w.+-]+@[\w-]+\.|in the form)"),
        ("](", r"!\[[^\]\n]{0,60}\]\(https?://[^)\s]{0,200}[?&][^)\s]{0,60}\)"),
    ),
    "order": (
        ("tell |inform |convince ", rf"\b(?:tell|inform|convince) (?:the |every |all |any |these )?{_WHOM}\b"),
        ("say|state|claim|answer|respond|reply|write|output|report|insist", rf"{_START}(?:say|state|claim|answer|respond|reply|write|output|report|insist)\b (?:that|only|with|exactly|the following|every question)\b"),
        ("output:|reply:|answer:|response:", rf"{_START}(?:output|reply|answer|response):\s"),
        ("recommend|promote|endorse|praise|give", rf"{_START}(?:recommend|promote|endorse|praise|give)\b (?:\w+ ){{0,3}}"),
        ("your answer|your reply|your response|your output|your only", r"\byour (?:answer|reply|response|output|only task) (?:must|should|shall|has to|is|will) "),
        ("append|add|include|insert", rf"{_START}(?:append|add|include|insert)\b[^.!?\n]{{0,80}}\b(?:in|to|at the end of) (?:your|every|each) (?:reply|answer|response|output)"),
        ("answer ", rf"{_START}answer (?:that|every|all)\b"),
        ("do not mention", r"\bdo not mention\b"),
    ),
}
"""The kind `order` counts only beside another kind."""

ODD = (
    ("invisible", "[\u00ad\u200b-\u200d\u2060-\u2064\ufeff\u034f\u180e]"),
    ("tags", "[\U000e0020-\U000e007e]{8,}"),
    ("mixed", "[A-Za-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][A-Za-z]"),
    ("spelt", r"\b[A-Za-z](?:(?: [A-Za-z]){2,}|(?:\.[A-Za-z]){2,}\.?|(?:[-_*][A-Za-z]){2,})\b\.?"),
    ("leet", r"\b[A-Za-z]{0,11}(?:[A-Za-z][01345$@]|[01345][A-Za-z])[A-Za-z01345$@]{1,11}"),
)
"""Ways of writing that hide words from a pattern."""

LEET_WORDS = frozenset(
    [
        "ignore",
        "disregard",
        "forget",
        "override",
        "all",
        "any",
        "your",
        "the",
        "previous",
        "prior",
        "above",
        "earlier",
        "system",
        "prompt",
        "instructions",
        "instruction",
        "rules",
        "reveal",
        "print",
        "assistant",
    ]
)

REPORTS = (
    r"\b(?:prompt|hidden|embedded|injected|suspicious|malicious|contains? an?|holds? an?|includes? an?|holds?|contains?|includes?|an?|the|no|such|these|those|this|following) instructions?\b",
    r"\bprompt[- ]injections?\b|\binjection attack",
    r"\b(?:asks?|asking|tells?|telling|told|instructs?|instructing|instructed|directs?|orders?|urges?|addressed to) (?:the |an? |any |all )?(?:ai|assistants?|chatbots?|language models?|llms?|models?|readers?|search engine)\b",
    r"\b(?:not followed|not follow|ignored (?:it|them|this|that)|will not (?:follow|comply)|did not follow|disregarded it)\b",
    r"プロンプトインジェクション|提示注入|prompt-?injecti|injection de prompt|inyección de prompts?|iniezione di prompt|enthält (?:eine )?anweisung",
)
"""Words by which an answer tells of an instruction instead of following it."""

GAVE_IN: dict[str, Wordings] = {
    "announces_obeying": (
        ("as instructed|as ordered|as directed|as commanded", r"\bas (?:instructed|ordered|directed|commanded) by (?:the|this) (?:\w+ ){0,2}(?:document|passage|page|text|context|comment|review)s?,? (?:i|we)\b"),
        (_RULES_KEYS + "|system message", rf"\b(?:i|we)(?:'m| am| are| will|'ll| have| shall| must)? (?:now |hereby |therefore )?(?:be )?(?:ignor|disregard|forget|abandon|overrid)(?:e|ing|ed|ting)? {_FILL}(?:my |{_EARLIER} ){{1,3}}(?:\w+ )?(?:{_RULES}|system message)"),
        ("ignoring ", rf"{_BEGIN}ignoring (?:all )?(?:of )?(?:my |the )?(?:{_EARLIER} )(?:instructions|rules|guidelines|prompts?)"),
    ),
    "reveals_prompt": (
        ("my ", r"\bmy (?:system (?:prompt|instructions?|message|rules)|(?:initial|original|hidden|secret|full) (?:prompt|instructions))(?: (?:is|are|says?|reads?|states?)\b(?: (?:as follows|that|to|:))?|:)"),
        ("here is|here are", r"\bhere (?:is|are) (?:my (?:system|initial|original|hidden|full) (?:prompt|instructions)|my system message|the (?:system prompt|instructions|rules) (?:that )?i (?:was|were|have been|must|follow))"),
        (" i ", r"\bthe (?:rules|instructions) (?:that )?i (?:must|have to|was|were|am|follow)[^.!?\n]{0,30}(?: are|:)"),
        ("mein", r"\bmein (?:system-?prompt|system prompt) (?:lautet|ist)|\bmeine (?:ursprünglichen|geheimen) anweisungen (?:lauten|sind)"),
        ("mon |mes ", r"\bmon (?:prompt(?: système)?|message système) est|\bmes instructions (?:système|secrètes|initiales) sont"),
        ("mi prompt|mis instrucciones", r"\bmi prompt (?:del sistema )?(?:es|dice)|\bmis instrucciones (?:ocultas|iniciales|del sistema) son"),
        ("prompt|systeem", r"\bil mio prompt (?:di sistema )?(?:è|dice)|\bo? ?meu prompt (?:do sistema )?(?:é|diz)|\bmijn systeemprompt (?:is|luidt)|\bmój prompt (?:systemowy )?(?:brzmi|to)"),
        ("提示|指令|プロンプト", r"我的(?:系统提示词?|系统指令|初始提示词?)(?:是|为|如下)|(?:私の|わたしの)?システムプロンプトは[「『：:]"),
    ),
    "changes_role": (
        (" mode", rf"{_BEGIN}(?:sure[,!]? )?(?:developer|dan|jailbreak|god|debug|maintenance|unrestricted) mode (?:is )?(?:now )?(?:enabled|activated|unlocked|on)\b\s*[.!:,)\]]"),
        ("i am|i'm", r"\bi(?: am|'m) (?:now )?(?:dan\b|freegpt|an? (?:unrestricted|unfiltered|uncensored|jailbroken)|no longer (?:bound|restricted|limited|an? (?:ai|assistant))|free (?:of|from) (?:all |any |my )?(?:rules|restrictions|guidelines))"),
        (" have no ", r"\bi(?: now)? have no (?:rules|guidelines|content filters)\b"),
    ),
}
"""What an answer says when it gives in, whatever the passages hold."""
# fmt: on


def _named(groups: dict[str, Wordings], prefix: str) -> list[Pattern]:
    return [
        Pattern(
            f"{prefix}:{kind}:{number}",
            f"(?m:{regex})",
            keywords=tuple(keys.split("|")),
            ignore_case=True,
            gate="|".join(_gate(key) for key in keys.split("|")),
        )
        for kind, wordings in groups.items()
        for number, (keys, regex) in enumerate(wordings)
    ]


def _gate(key: str) -> str:
    """Return a cheap pattern for one key; a word of two letters stands alone."""
    escaped = "".join(c if c.isalnum() or c in " :#@'<>-_" else f"\\{c}" for c in key)
    return rf"\b{escaped}\b" if len(key) == _SHORT and key.isascii() and key.isalpha() else escaped


PATTERNS = (
    *_named(SURE, "sure"),
    *_named(WEAK, "weak"),
    *_named(GAVE_IN, "answer"),
    *(Pattern(f"odd:{name}", regex) for name, regex in ODD),
)
"""Everything passages and answers are searched for; `answer:` counts in answers only."""
