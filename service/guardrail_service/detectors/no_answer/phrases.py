"""Phrases by which an answer says that it has no answer, in nine languages, as RE2 patterns.

They are matched against one clause, case-folded, without closing punctuation. `…` stands for
nothing, or a blank and anything; `§` for anything: what the clause is about. `detector.py` decides
whether that may be there.
"""

# One phrase a line: a wrapped one is harder to check than a long one.
# ruff: noqa: E501

_ADJECTIVE = (
    "(?:provided|given|available|supplied|retrieved|above|current|search|reference|relevant|source|"
    "following|uploaded|same|text|context)"
)
_NOUN = (
    "(?:contexts?|passages?|documents?|documentation|texts?|sources?|information|info|articles?|"
    "materials?|excerpts?|snippets?|results|knowledge base|knowledge|data|content|question)"
)
_GIVEN = (
    "(?:i have|i was given|i have been given|you provided|you shared|you gave me|provided|given|"
    "available|supplied|retrieved|to me|at hand|above)"
)
SOURCES = f"(?:(?:any|none|all) of )?(?:(?:the|these|this|my|your|our) )?(?:{_ADJECTIVE} )*{_NOUN}(?: {_GIVEN})*"

_I = "(?:i|we)(?: (?:really|actually|currently|simply|unfortunately))?"
_CANNOT = (
    "(?:can't|cannot|can not|could not|couldn't|(?:am|'m|was|are|'re|were)(?: not able| unable) to)"
    "(?: seem to)?"
)
_DO_NOT = "(?:do not|don't|did not|didn't|does not|doesn't)"
_HOW = "(?:explicitly |directly |specifically |actually |clearly |really |currently )?"
_SAY = (
    "(?:mention|contain|provide|specify|state|say|include|give|discuss|describe|address|answer|"
    "cover|explain|indicate|list|name|tell|detail|disclose|offer|have|refer to)s?"
)
_FACTS = "(?:information|info|details?|data|mention|answers?|context|reference)"
_DEGREE = "(?:any |enough |sufficient |the |that |an |specific |more |further |relevant |direct |clear |up-to-date |real-time |exact )*"
_ON = "(?:,? (?:about|on|regarding|concerning|for|of|in|to|from|as|whether|if|what|who|when|where|why|how|which|available|provided|given|at)…)?"
_GIVEN_UP = (
    "(?:mentioned|specified|stated|provided|given|included|found|available|answered|determined|"
    "disclosed|contained|listed|covered|discussed|described|explained|addressed|present)"
)

SELF = (
    # English: the speaker does not know
    f"{_I} {_DO_NOT} {_HOW}know…",
    f"{_I} have no (?:idea|clue)…",
    "(?:i'm|i am|we're|we are) (?:not (?:quite |entirely |completely )?(?:sure|certain)|unsure|uncertain)…",
    f"(?:{_I}|i'm|i am|we're|we are) {_CANNOT} (?:answer|determine|establish|respond to)…",
    "(?:i'm|i am|we're|we are)(?: not able| unable) to (?:answer|determine|establish|respond to)…",
    f"{_I} {_CANNOT} (?:tell|say)(?: you)?(?: (?:for sure|for certain|whether|if|what|who|when|where|why|how|which|from|based on)…)?",
    f"{_I} {_CANNOT} (?:help|assist)(?: you)?(?: (?:with|here)…)?",
    f"{_I} {_CANNOT} (?:provide|give|offer)(?: you)?(?: with)? (?:an?|any|the|that|this|more|further|specific|medical|legal|financial| )*(?:answer|information|details|advice|response|help)…",
    f"{_I} {_DO_NOT} {_HOW}have (?:access to )?{_DEGREE}{_FACTS}{_ON}",
    f"{_I} {_DO_NOT} {_HOW}have (?:access to|knowledge of|knowledge about)…",
    f"{_I} have (?:no|insufficient|not enough|too little) (?:relevant |specific |further )?(?:information|info|details|data|knowledge|context){_ON}",
    f"{_I} lack (?:the |any |enough |sufficient )?(?:information|details|data|context){_ON}",
    "(?:cannot|can't|unable to) (?:answer|determine|be answered|be determined)…",
    # German
    "(?:das|dies|es) (?:weiß|weiss) ich(?: leider)? nicht(?: genau)?",
    "ich (?:weiß|weiss)(?: es| das| dies)?(?: leider)? nicht(?: genau| sicher)?…",
    "ich bin (?:mir )?(?:da )?(?:nicht sicher|unsicher)…",
    "ich (?:kann|konnte) (?:das|dies|es|diese frage|die frage|ihre frage|deine frage)(?: leider)?(?: [a-zäöüß]+){0,6} nicht (?:sagen|beantworten)",
    "(?:leider )?(?:kann|konnte) ich (?:das|dies|es|diese frage|die frage|ihre frage|deine frage)(?: leider)?(?: [a-zäöüß]+){0,6} nicht (?:sagen|beantworten)",
    "(?:ich habe|leider habe ich|habe ich|dazu habe ich|darüber habe ich)(?: leider)?(?: dazu| hierzu| darüber)? (?:keine|nicht genügend|zu wenig)(?: ausreichenden| genauen| weiteren)? (?:informationen|angaben|daten)…",
    "(?:dazu|darüber|hierzu|hierüber|leider)?(?: )?liegen mir(?: leider| dazu| hierzu)? keine (?:informationen|angaben|daten) vor",
    # French
    "je ne sais(?: malheureusement)? pas…",
    "je ne (?:peux|puis|suis pas en mesure de)(?: malheureusement)?(?: pas)? répondre…",
    "je ne suis pas (?:sûre?|certaine?)…",
    "je (?:n'ai|ne dispose)(?: malheureusement)? (?:pas|d'aucune|aucune)(?: (?:assez|suffisamment))?(?: d'| de | )informations?…",
    # Spanish
    "(?:yo )?no (?:lo )?sé…",
    "no (?:puedo|soy capaz de) (?:responder|contestar)…",
    "no estoy segur[oa]…",
    "no (?:tengo|dispongo de|cuento con)(?: suficiente| ninguna| la)? información…",
    # Italian
    "non (?:lo )?so…",
    "non (?:posso|sono in grado di) rispondere…",
    "non sono sicur[oa]…",
    "non (?:ho|dispongo di)(?: abbastanza| sufficienti| alcuna)? informazion[ei]…",
    # Portuguese
    "(?:eu )?não (?:o )?sei…",
    "(?:eu )?não (?:posso|consigo) responder…",
    "(?:eu )?não tenho certeza…",
    "(?:eu )?não (?:tenho|disponho de)(?: nenhuma)? informaç(?:ão|ões)…",
    # Dutch
    "(?:dat|dit) weet ik(?: helaas)? niet(?: precies)?",
    "ik weet(?: het| dat)?(?: helaas)? niet(?: zeker| precies)?…",
    "ik kan (?:deze|uw|je|de) vraag(?: helaas)?(?: [a-z]+){0,6} niet beantwoorden…",
    "ik heb(?: helaas)?(?: daar)? (?:geen|niet genoeg|onvoldoende) informatie…",
    # Japanese and Chinese
    ".*(?:わかりません|分かりません|存じません|知りません|お答えできません|回答できません|答えられません|判断できません)",
    "我?(?:也|真的|暂时)?(?:不知道|不清楚|不确定|无法回答|无法确定|无法得知|无法判断|回答不了)§",
    "我(?:并|也|暂时)?没有(?:相关|足够|任何|更多|的)*(?:信息|资料)§",
)
"""The speaker lacks the knowledge: what follows stays under "I do not know"."""

SOURCE = (
    # English: the sources lack it
    f"{SOURCES} {_DO_NOT} {_HOW}(?:seem to |appear to )?{_SAY}…",
    f"(?:none|nothing|neither) (?:of|in) {SOURCES} {_HOW}{_SAY}…",
    f"there(?: is|'s| was| are| were) (?:no|not any|not enough|insufficient) (?:relevant |specific |further |explicit |direct )?{_FACTS}{_ON}",
    f"no (?:relevant |specific |further |explicit )?(?:{_FACTS}|results|documents)(?: (?:was|were|is|are|could be) {_GIVEN_UP})…",
    f"{_I} {_CANNOT} (?:find|locate|identify|confirm|verify)…",
    "(?:i'm|i am|we're|we are)(?: not able| unable) to (?:find|locate|identify|confirm|verify)…",
    f"{_I} (?:did not|didn't) find…",
    f"§(?: is| was| are| were|'s)(?: not|n't) {_HOW}(?:{_GIVEN_UP} )?(?:in|by|within|from|based on) {SOURCES}",
    f"it(?: is|'s) (?:unclear|not (?:clear|{_GIVEN_UP})) (?:from|in|based on) {SOURCES}…",
    "it(?: is|'s) (?:not possible|impossible) to (?:answer|determine|say|tell)…",
    f"the (?:question|answer)(?: can| could| is)(?:not| not|n't) be {_GIVEN_UP}…",
    f"(?:{_FACTS}|that|this|it|the answer)(?: is| was)(?: not|n't) {_GIVEN_UP}…",
    # German
    "(?:die|der|das|den)(?: bereitgestellten?| vorliegenden?| gegebenen?| angegebenen?| verfügbaren?)* (?:dokumente?n?|kontext|texte?|quellen|unterlagen|passagen|informationen) (?:enthalten|enthält|erwähnen|erwähnt|nennen|nennt|geben|gibt|sagen|sagt)(?: leider)? (?:keine?n?|keinerlei|nicht|nichts)…",
    "(?:im|in den|in dem)(?: bereitgestellten| vorliegenden| gegebenen)* (?:kontext|text|dokumenten|quellen|unterlagen) (?:wird|werden|ist|sind|steht|gibt es)(?: leider)? (?:nicht|nichts|keine informationen)(?: erwähnt| angegeben| genannt| beschrieben)?…",
    # French
    "(?:le|les|la|l')(?: )?(?:contexte|documents?|textes?|passages?|sources?|extraits?)(?: fournie?s?| donnée?s?)* ne (?:mentionne|contien|précise|indique|donne|fourni|di|parle)[a-z]*(?: pas| aucune?)…",
    "il n'y a (?:pas|aucune)(?: d')?(?: )?informations?…",
    # Spanish
    "(?:el|los|la|las) (?:contexto|documentos?|textos?|fuentes?|pasajes?)(?: proporcionad[oa]s?)? no (?:menciona|contiene|proporciona|especifica|indica|incluye|dice)n?…",
    "no hay(?: suficiente)? información…",
    # Italian
    "(?:il|i|la|le|lo|gli) (?:contesto|documenti?|test[oi]|font[ei]|passagg[io]+)(?: fornit[oi]| dat[oi])? non (?:menziona|contien|conteng|specifica|indica|fornisc|dic|riporta)[a-z]*…",
    "non ci sono informazioni…",
    # Portuguese
    "(?:o|os|a|as) (?:contexto|documentos?|textos?|fontes?|trechos?)(?: fornecid[oa]s?)? não (?:menciona|contém|contêm|fornece|especifica|indica|inclui|diz)m?…",
    "não há informaç(?:ão|ões)…",
    # Dutch
    "(?:de|het)(?: verstrekte| gegeven| beschikbare)* (?:documenten|document|context|teksten|tekst|bronnen) (?:bevatten|bevat|vermelden|vermeldt|noemen|noemt|geven|geeft|zeggen|zegt) (?:geen|niet|niets)…",
    "er is geen informatie…",
    # Japanese and Chinese
    "§(?:情報|記載|言及)(?:は|が)?(?:ありません|見つかりません(?:でした)?|含まれていません|されていません|不足しています)",
    "(?:提供的|所给的?|给定的?|相关|这些|该)*(?:文档|文件|上下文|资料|文本|文章|信息|内容|材料|文中)(?:中|里)?(?:并)?(?:没有|未)(?:提到|提及|说明|提供|包含|指出|记载)§",
    "没有找到§",
)
"""The passages lack the fact: an abstention only about what was asked."""

FRAGMENT = (
    "unknown|n/a|unanswerable|no answer(?: found| available| is available)?|"
    f"not {_GIVEN_UP}(?: (?:in|by) {SOURCES})?|(?:insufficient|not enough) (?:information|context|data)|"
    f"no (?:relevant )?information(?: {_GIVEN_UP})?(?: (?:in|by) {SOURCES})?",
)
"""Whole answers without a verb."""

SOFTENER = (
    "(?:i'm|i am|we're|we are)(?: so| very| truly)? sorry(?: to say)?(?: that)?",
    "sorry",
    "(?:i|we) apologi[sz]e(?: that)?",
    "(?:my )?apologies",
    "(?:i'm|i am) afraid(?: that)?",
    "unfortunately|regrettably|currently|honestly|to be honest|hmm|well|at (?:this time|the moment)",
    f"(?:based|relying) (?:only |solely )?on {SOURCES}",
    f"(?:according to|from|given|in|with|within|after reviewing|after searching) {SOURCES}",
    "answer|as an ai(?: language)?(?: model| assistant)?",
    "leider|entschuldigung|(?:es )?tut mir leid",
    "(?:je suis )?désolée?|malheureusement|pardon",
    "lo siento|lamentablemente|desafortunadamente|perdón|disculpe",
    "mi dispiace|purtroppo|spiacente|scusa",
    "desculpe|infelizmente|lamento|sinto muito",
    "helaas|het spijt me",
)
"""Phrases that may come before, as a clause of their own or in front of one."""

SOFTENER_UNSPACED = (
    "申し訳(?:ありません|ございません)(?:が)?|すみません(?:が)?|残念ながら",
    "(?:提供された|与えられた|この|その)*(?:資料|文書|文脈|コンテキスト|情報|ドキュメント|テキスト)(?:には|に|からは|から|では|で|によると)",
    "(?:很|非常)?抱歉|对不起|不好意思",
    "(?:根据|基于)(?:所|提供的|提供|给定的|上述|现有的?|相关)*(?:文档|文件|上下文|资料|文本|文章|信息|内容|材料)",
)
"""The same in scripts without blanks."""

_WORDS = r"(?: [^\s\d]+)"
_FEW = f"{_WORDS}{{0,6}}"
"""Open ends of courtesy are short and without digits: "if you have a code the hotel pays you 90" is a
claim, and so is a telephone number."""
_ADVISE = (
    "(?:please |kindly |you (?:may|might|can|could|should|may want to|might want to|can also)(?: try to)? |"
    "try |i(?:'d| would)? (?:recommend|suggest)(?: that you)? |consider )?"
)
_WHO = (
    "(?:them|us|me|him|her|someone|somebody|again|directly|(?:with |in )?(?:(?:the|our|their|your|its|his|her|a|an|my|this|that|any|one of our) )?(?:[^\\s\\d]+ ){0,4}"
    "(?:web ?site|site|home ?page|page|portal|app|faqs?|help cent(?:er|re)|manual|guide|handbook|instructions|documentation|documents?|docs|policy|policies|terms|contract|agreement|sources?|label|leaflet|"
    "doctor|physician|gp|nurse|pharmacist|therapist|dentist|vet|lawyer|attorney|solicitor|notary|adviser|advisor|accountant|bank|insurer|professional|expert|specialist|"
    "reception|desk|concierge|support|service|services|team|staff|manager|management|employer|landlord|provider|supplier|manufacturer|dealer|retailer|seller|operator|owner|administrator|admin|"
    "hotel|restaurant|shop|store|school|university|library|museum|clinic|hospital|company|organi[sz]ation|agency|department|office|authority|authorities|embassy|consulate|police|police station|hotline|helpline|representative|colleague|agent)s?)"
)
_ABOUT_WHAT = (
    "(?:for|about|on|regarding|concerning|with|to (?:get|obtain|find out|learn|ask|check|confirm|verify|see|be sure))"
    "(?: (?:the|your|this|that|these|any|some|more|further|additional|other|specific|detailed|exact|precise|accurate|current|latest|most|up-to-date|recent|official|about|on|personali[sz]ed|individual|medical|legal|financial|professional))*"
    " (?:information|info|details?|help|assistance|support|advice|guidance|clarification|answers?|instructions|questions?|specifics|updates?|recommendations?|opening hours|hours|prices?|rates?|matter|topic|issue|situation|case)"
    f"(?: (?:about|on|regarding|concerning|of|for|from){_FEW})?"
)
_REFERRED = f"{_WHO}(?: (?:directly|online|instead|first))?(?: (?:or|and) (?:(?:contact |consult |ask |check |visit )?{_WHO}|contact{_WORDS}{{1,4}}?)(?: directly)?)?(?: {_ABOUT_WHAT})?(?: (?:before|if|when|as) you{_FEW})?"
COURTESY = (
    "(?:i'm|i am)?(?: )?(?:so |very )?sorry (?:about|for) (?:that|this|(?:the|any) (?:inconvenience|confusion))",
    "(?:i|we) apologi[sz]e(?: for (?:the|any|this) (?:inconvenience|confusion))",
    f"{_ADVISE}(?:contact|contacting|consult|consulting|check|checking|refer to|referring to|visit|visiting|see|reach out to|ask|asking|try asking)(?: with)? {_REFERRED}",
    f"{_ADVISE}(?:contact|contacting|consult|consulting|reach out to){_WORDS}{{1,4}}(?: directly)?(?: {_ABOUT_WHAT})?",
    "(?:about|for) (?:that|this|(?:the|any) (?:inconvenience|confusion))",
    "(?:i )?hope (?:this|that|it) (?:helps?|was helpful|answers your question)(?: you)?",
    "please (?:provide|share|give|clarify|rephrase|specify)(?: me)?(?: with)?(?: (?:more|additional|further|some|the|your|a))*(?: specific)?(?: (?:context|information|details|documents?|question))?",
    f"(?:i'd|i would|i'll|i will|i am|i'm)(?: be)? (?:happy|glad) to (?:help|assist)(?: you)?(?: (?:with|further|if|by|in|find|more|out){_FEW})?",
    f"if you(?:'d| would| can| could)?(?: please)?(?: (?:have|need|want|like|require|provide|share|give|clarify|specify|tell|rephrase|upload))+(?: (?:me|us|with|some|any|the|your|a|an|more|further|additional|other|specific|relevant|exact|me with))*"
    f" (?:information|info|details?|help|assistance|support|clarification|context|documents?|documentation|questions?|concerns?|passages?|text|sources?|data|specifics|anything else|to know more)(?: (?:about|on|regarding|concerning|with|of|or|that){_FEW})?",
    f"{_ABOUT_WHAT}(?: (?:please )?(?:contact|consult|check|refer to|visit|see|ask) {_REFERRED})?",
    f"is there anything else{_WORDS}{{0,10}}",
    f"thank you(?: for{_FEW})?|thanks",
    f"bitte (?:wenden sie sich an|kontaktieren sie|fragen sie){_WORDS}{{1,8}}",
    f"veuillez (?:contacter|consulter){_WORDS}{{1,8}}",
    f"(?:por favor (?:contacte|consulte)|póngase en contacto con){_WORDS}{{1,8}}",
    f"(?:si prega di )?(?:contattare|contatti|consulti){_WORDS}{{1,8}}",
    f"por favor entre em contato com{_WORDS}{{1,8}}",
    f"neem contact op met{_WORDS}{{1,8}}",
    "请(?:联系|咨询|查阅|查看|提供)§",
    ".*お問い合わせください|.*ご確認ください",
)
"""Offers of help and where else to ask: they assert nothing about the question."""

CLAIM = (
    ".* know of any.*|.* (?:find|identify|locate) any (?:evidence|reasons?|problems?|errors?|issues?|proof).*",
)
"""Sounds like ignorance and is a finding."""
