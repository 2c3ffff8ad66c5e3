"""Further wordings of abstention, as RE2 patterns for one clause; see `phrases.py` for the form.

An open end must state nothing (`STATES`): "the documents do not mention a fee so it is free" is a
claim.
"""

# One phrase a line: a wrapped one is harder to check than a long one; punctuation of several scripts.
# ruff: noqa: E501

from guardrail_service.detectors.no_answer.phrases import SOURCES

_NOUN = (
    "(?:contexts?|passages?|documents?|documentation|docs|texts?|sources?|information|info|articles?|materials?|excerpts?|extracts?|snippets?|results|knowledge base|data|content|"
    "listing|pages?|brochure|leaflet|files?|polic(?:y|ies)|contract|agreement|manual|handbook|guide|reports?|minutes|notes?|description|website|site|records?|transcript|chapters?|sections?|"
    "paragraphs?|books?|menu|timetable|schedule|data ?sheet|letters?|e-?mails?|papers?|study|fact ?sheet|faqs?|terms|rules|announcement|notice|advert|ad|recipe|statement|table|list|entry|review|"
    "summary|overview|catalogue|catalog|programme|program|readme|regulations|guidelines|instructions|article|story|chat|thread|log)"
)
_GIVEN = (
    "(?:i have|i was given|i have been given|i've been given|i can see|i see|i have access to|you provided|you shared|you sent|you gave me|provided|given|available|supplied|retrieved|to me|at hand|"
    "above|here|in front of me|before me|i have here)"
)
_DOC = f"(?:(?:any|none|all|most|one|either|neither) of )?(?:(?:the|these|this|that|those|my|your|our|its) )?(?:[a-z'-]+ ){{0,2}}{_NOUN}(?: {_GIVEN})*(?: alone)?"
_MAYBE = "(?:explicitly |directly |specifically |actually |clearly |really |currently |even |also |seem to |appear to |exactly |precisely |anywhere |further )*"
_NOT = "(?:do not|don't|did not|didn't|does not|doesn't)"
_I = "(?:i|we)(?: (?:really|actually|currently|simply|unfortunately|honestly|just|still|also))?"
_I_CANNOT = (
    f"(?:{_I} (?:can't|cannot|can not|could not|couldn't|can unfortunately not|am not able to|was not able to|wasn't able to|were not able to|weren't able to|am unable to|was unable to|were unable to|have not been able to|haven't been able to|would not be able to|wouldn't be able to|won't be able to)|"
    "(?:i'm|we're|i am|we are)(?: currently| unfortunately| really| just| afraid i'm)? (?:not able to|unable to|not in a position to)|(?:it's|it is|it was)(?: not possible|n't possible| impossible)(?: for me| for us)? to|unable to|can't|cannot|couldn't)(?: seem to| really| actually)?"
)
_FACT = "(?:mentions?|words?|references?|information|info|details?|data|answers?|indications?|figures?|statements?|hints?|specifics|records?|entry|entries|trace|clues?|passages?|documents?|sources?|guidance)"
_SAYING = (
    "(?:say|mention|state|specify|tell|indicate|describe|discuss|explain|address|list|name|detail|record|go into|touch on|touch upon|talk about|speak of|speak about|speak to|elaborate|spell|make clear|make it clear|clarify|"
    "reveal|disclose|refer to|make any|make mention|make reference|(?:give|provide|contain|include|have|offer|hold)(?: me| us)?(?: any| an?| the| this| that| enough| sufficient| further| more| relevant| specific| exact)* (?:mention|information|info|details?|data|answers?|indication|figures?|specifics|reference|hint|reason))s?"
)
_GONE = "(?:mentioned|specified|stated|discussed|documented|spelled out|spelt out|touched on|touched upon|indicated|disclosed|described|addressed|noted|named|explained|detailed|defined|said|revealed|elaborated on)"


def _near(nouns: str, verbs: str) -> str:
    """Return a pattern for a clause with both: a verb that says little needs a source beside it."""
    return f"(?:(?:§[ '])?{nouns}(?: §)? {verbs}(?: §)?|(?:§ )?{verbs}(?: §[ ']| ){nouns}(?: §)?)"


MORE_SELF = (
    f"{_I_CANNOT} (?:answer|determine|establish|respond|tell|comment|advise|judge|speak to|be sure|be certain|know|find out|work (?:it|that|this) out|figure (?:it|that|this) out|make that out|address|look (?:it|that|this) up)(?:…)",
    f"{_I_CANNOT} say(?: (?:for sure|for certain|with certainty|exactly))?…",
    f"{_I_CANNOT} (?:provide|give|offer|share)(?: you)?(?: with)?(?: an?| any| the| that| this| those| more| further| specific| exact| precise| definite| reliable| medical| legal| financial| personal)* (?:answer|information|info|details?|advice|response|help|figure|number|price|date|confirmation|recommendation)…",
    f"{_I_CANNOT} (?:help|assist)(?: you)?(?: (?:with|here|there|on)…)?",
    f"{_I} (?:wouldn't|would not) (?:know|be able to say|be able to tell)…",
    f"{_I} {_NOT} {_MAYBE}(?:know|remember|recall)…",
    f"{_I} {_NOT} {_MAYBE}have (?:that|those|this|these|anything|any|an answer|the answer|specifics|records?|what i need|what you need|enough|insight|visibility|access|knowledge|details|information)…",
    f"{_I} (?:have|had|got|have got)(?: unfortunately| currently)? (?:no|insufficient|not enough|too little|little) (?:[a-z-]+ ){{0,2}}(?:idea|clue|information|info|details?|data|records?|access|way of|answers?|knowledge|figures?|means of|sources?|insight|documents?|indication|context)…",
    f"{_I} (?:have|had|have got) nothing (?:on|about|regarding|concerning|in|to go on|that|for)…",
    "(?:i|we) (?:just|only) (?:have|know|see)(?: the)? (?:details|information|info|data|access to|documents|passages|text|what|about)…",
    "(?:i|we) can (?:just|only) (?:answer|help with|speak to|go by|work with|rely on|tell you about|see|use)…",
    "(?:that|this|it|the answer)(?:'s not|'s| is not|isn't| is)(?: not)? (?:something|a question|a detail|one|anything|information)(?: that| which)? (?:i|we) (?:can't|cannot|can not|couldn't|don't|do not|am unable to|'m unable to|'m not able to|can|could|am able to|know|have)(?: (?:answer|tell|say|help|find|see|know|determine|confirm|have|speak|comment|give|look)…)?",
    f"(?:that|this|it|your question|the question|that question|this question)(?:'s| is| goes| lies| falls) (?:far |well |somewhat )?(?:beyond|outside|out of)(?: of)? (?:what i (?:know|have|can)|what {_DOC}|my|the scope|the range|{_DOC})…",
    "the answer (?:is not|isn't|is nowhere|can't be|cannot be|can not be|could not be|couldn't be|does not seem to be|doesn't seem to be)(?: known| found| in| to be found| given| part| among| determined| derived| available| contained| there)…",
    "(?:it's |it is )?(?:no idea|not sure|no clue|hard to say|hard to tell|difficult to say|difficult to tell|i'd be guessing|i would be guessing|i'd just be guessing|i would have to guess|i'd have to guess|that would be a guess|anything else would be a guess|it would only be a guess)…",
    "(?:i|we)(?:'d| would) rather not (?:guess|speculate|say)…",
    "(?:i|we) (?:don't|do not) want to (?:guess|speculate|mislead you|make anything up|make something up|give you wrong information|give you the wrong information)…",
    "(?:i|we) (?:won't|will not|shouldn't|should not) (?:guess|speculate|make anything up|make something up)…",
    "(?:this|that|such|the|these|those|the requested|any such) (?:[a-z-]+ )?(?:information|info|details?|data|answer|figures?) (?:is|are|was|were)(?: unfortunately| currently| simply)?(?:n't| not| nowhere| missing| unavailable| lacking| absent)(?: (?:available|given|provided|included|in|part|contained|found|known|there|present|mentioned|stated|listed|covered|specified|recorded|to be found|accessible|at hand|public|among|on file|on record|from)…)?",
    "(?:my|the) (?:sources|information|documents|knowledge|data|material|context|passages|documentation)(?: here)? (?:(?:is|are) (?:limited|not enough|insufficient|incomplete)|(?:does not|doesn't|do not|don't) (?:go|reach|extend|help|answer))…",
    # German
    "(?:das|dies|es) (?:kann|konnte) ich (?:ihnen |dir |euch )?(?:leider |anhand [^\\s]+ [^\\s]+ |aus [^\\s]+ [^\\s]+ )*nicht (?:sagen|beantworten|beurteilen|finden|bestätigen|herauslesen|feststellen)",
    "(?:leider |darauf |dazu |hierzu |das |hierauf |(?:diese|ihre|deine|die) frage )*(?:kann|konnte|habe|finde|weiss|fand) ich (?:ihnen |dir |euch |dazu |hierzu |darüber |darauf |leider |es |auf diese frage |zu dieser frage |in [^\\s]+ [^\\s]+(?: [^\\s]+)? )*(?:nicht(?:s)?|keine?n?|keinerlei)(?: genauen| weiteren| passenden| näheren)?(?: (?:sagen|beantworten|finden|gefunden|informationen|angaben|antwort|auskunft|hinweise?|daten|geben|genau|weiterhelfen|helfen|antworten|beurteilen|entnehmen))*…",
    "ich (?:kann|konnte|habe|finde|fand|weiss)(?: ihnen| dir| euch| dazu| hierzu| darüber| darauf| leider| es| das| auf diese frage| zu dieser frage| zu diesem thema| diese frage| ihre frage| in [^\\s]+ [^\\s]+(?: [^\\s]+)?| aus [^\\s]+ [^\\s]+(?: [^\\s]+)?| mit [^\\s]+ [^\\s]+(?: [^\\s]+)?| anhand [^\\s]+ [^\\s]+(?: [^\\s]+)?)* (?:nicht(?:s)?|keine?n?|keinerlei|nur raten)(?: genauen| weiteren| passenden| näheren| passende| genaue| ausreichenden)?(?: (?:sagen|beantworten|finden|gefunden|informationen|angaben|antwort|auskunft|hinweise?|daten|geben|genau|weiterhelfen|helfen|antworten|beurteilen|entnehmen|sicher|dazu|hierzu|darüber))*…",
    "(?:dazu|darüber|hierzu|hierüber|mir|leider|zu diesem thema|zu dieser frage)(?: mir)? (?:liegen|fehlen|fehlt)(?: mir| leider| dazu| hierzu)*(?: (?:keine|die|eine))?(?: [a-zäöü]+en?)?(?: (?:informationen|angaben|daten|information|angabe))?(?: vor)?",
    "(?:ich bin )?(?:überfragt|mir nicht sicher|nicht sicher)|da bin ich (?:leider )?überfragt|keine ahnung",
    # French
    "je (?:ne |n')(?:le |vous |en )?(?:sais|peux|puis|suis|connais|dispose|trouve|vois|ai|dispose)(?: malheureusement| hélas)?(?: pas| rien| aucune?| d'aucune?)…",
    "(?:cela|ça|c'est|ce n'est)(?: pas)? (?:quelque chose|une question)(?: que| à laquelle) je (?:ne )?(?:peux|sais|puisse)(?: pas)?…",
    "(?:aucune idée|je l'ignore|j'ignore)…",
    "je manque d'informations?…",
    "il m'est impossible de (?:répondre|dire|vous répondre|le dire|vous le dire)…",
    # Spanish
    "(?:yo )?no (?:lo |le |te |se )?(?:sé|(?:puedo|podría|pude|soy capaz de|logro|logré)(?: [a-záéíóúñ]*)?(?:responder|contestar|dec|confirmar|ayudar|encontrar|determinar|saber|precisar|indicar|proporcionar|dar|ofrecer|hallar|localizar|asegurar|verificar)[a-zí]*|tengo|dispongo de|cuento con|estoy segur[oa]|conozco|encuentro|veo)…",
    "(?:lo )?(?:desconozco|ignoro|carezco de|me faltan|me falta)…",
    "no me es posible (?:responder|contestar|decir)…",
    "(?:esa|esta|dicha) (?:información|respuesta) no (?:está|figura|aparece|consta|se encuentra)…",
    # Italian
    "(?:io )?non (?:lo |le |ti |vi |ne )?(?:so|saprei|(?:posso|potrei|sono in grado di|sono riuscit[oa] a|riesco a|saprei)(?: [a-zàèéìòù]*)?(?:rispond|dir|conferm|aiut|trov|determin|sape|precis|indic|forn|da|stabil|verific)[a-z]*|ho|dispongo di|conosco|trovo|vedo|sono sicur[oa])…",
    "(?:ignoro|mi mancano|mi manca)…",
    "non mi è possibile (?:rispondere|dire)…",
    "(?:questa|tale|quella) (?:informazione|risposta) non (?:è|figura|compare|risulta|si trova)…",
    # Portuguese
    "(?:eu )?não (?:o |lhe |te |me )?(?:sei|(?:posso|consigo|consegui|saberia|sou capaz de)(?: [a-zãõáéíóúâêôç]*)?(?:respond|diz|confirm|ajud|encontr|determin|saber|precis|indic|fornec|dar|achar|localiz|verific)[a-zê-]*|tenho|disponho d[a-z]+|conheço|encontrei|encontro|vejo|achei)…",
    "(?:desconheço|ignoro|faltam-me|falta-me)…",
    "não me é possível (?:responder|dizer)…",
    "(?:essa|esta|tal) (?:informação|resposta) não (?:está|consta|aparece|se encontra)…",
    # Dutch
    "(?:dat|dit|daar|hier|helaas|daarover|hierover)?(?: )?(?:weet|kan|kon|heb|vind) ik(?: het| dat| dit| u| je| daar| hier| helaas| daarover| hierover| er| over dat onderwerp| daarop| in [^\\s]+ [^\\s]+(?: [^\\s]+)?)* (?:niet(?:s)?|geen|onvoldoende)…",
    "ik (?:weet|kan|kon|heb|vind|ben)(?: het| dat| dit| u| je| daar| hier| helaas| daarover| hierover| er| over dat onderwerp| daarop| deze vraag| uw vraag| je vraag| in [^\\s]+ [^\\s]+(?: [^\\s]+)?| op basis van [^\\s]+ [^\\s]+)* (?:niet(?:s)?|geen|onvoldoende)…",
    "ik heb(?: daar)? (?:die|deze|dat|dit)(?: informatie| gegevens)?(?: helaas)? niet…",
    "(?:geen idee|dat is mij niet bekend|dat is me niet bekend|mij ontbreekt [^\\s]+ informatie)…",
    # Polish
    "(?:ja )?nie (?:wiem|(?:mogę|potrafię|jestem w stanie|umiem|udało mi się)(?: na to| tego| ci| panu| pani| niestety| jednoznacznie)* (?:odpowiedzieć|powiedzieć|pomóc|znaleźć|określić|stwierdzić|ustalić|potwierdzić|podać|udzielić|sprawdzić|wskazać)|jestem pew(?:ien|na)|mam|znam|znalazłem|znalazłam|znajduję|posiadam|dysponuję|widzę)…",
    "(?:trudno (?:mi )?powiedzieć|brakuje mi|brak mi|nie jest mi wiadomo)…",
    "(?:na to pytanie|na ten temat|tego)(?: niestety)? nie (?:mogę|potrafię|wiem|jestem w stanie|mam|umiem|znalazłem|znalazłam)…",
    # Chinese and Japanese
    "(?:我|对此|这个问题|关于这个问题|这一点|这个)*(?:也|真的|暂时|目前|还|并|恐怕|实在)*(?:不知道|不清楚|不确定|不了解|不太清楚|没法回答|没办法回答|无法回答|无法确定|无法得知|无法判断|无法提供|无法确认|无法告知|无法说明|无法给出|不能回答|不能确定|回答不了|帮不上忙|答不上来|难以判断|难以回答|无从得知|不得而知)§",
    "(?:我|这里|目前|暂时|暂|手头|手上)*(?:并|也|还)*(?:没有|没|缺乏|缺少|查不到|找不到|没查到|没找到|未找到|未能找到|没能找到|没有找到|没有查到|未查到|没有看到|没看到|未见)(?:相关|足够|任何|更多|关于|有关|的|这方面|这个|这一|相应|具体|此|该)*§(?:信息|资料|内容|答案|说明|记录|数据|记载|描述)",
    ".*(?:わかりません|分かりません|わかりかねます|分かりかねます|存じません|存じ上げません|知りません|お答えできません|お答えできかねます|お答えしかねます|回答できません|回答いたしかねます|答えられません|判断できません|判断できかねます|判断しかねます|確認できません(?:でした)?|確認できておりません|見つけられません(?:でした)?|不明です|把握しておりません|ご案内できません|お伝えできません)(?:。)?",
)
"""The speaker lacks the knowledge."""

MORE_SOURCE = (
    f"{_DOC} {_NOT} {_MAYBE}{_SAYING}…",
    f"(?:it|they) {_NOT} {_MAYBE}(?:say|mention|state|specify|tell|indicate|go into|spell|make clear|make it clear|elaborate|reveal|disclose)…",
    f"{_DOC} (?:is|are|was|were|remains?|stays?|keeps?) (?:completely |entirely |altogether )?silent…",
    f"{_DOC} (?:says?|mentions?|contains?|gives?|tells?|reveals?|includes?|provides?|offers?|has|have|holds?)(?: us| me| you)? nothing…",
    f"{_DOC} (?:makes?|made|gives?|gave|contains?|contained|has|have|had|provides?|provided|offers?|includes?|holds?)(?: us| me| you)? no (?:[a-z-]+ ){{0,2}}{_FACT}…",
    f"{_DOC} (?:fails?|neglects?|failed|neglected) to (?:mention|say|state|specify|indicate|explain)…",
    f"{_DOC} (?:leaves?|left) (?:(?:this|that|it|the) ?(?:question|point|matter|issue)? (?:open|unanswered|out|unclear)|open)…",
    f"{SOURCES} (?:lacks?|omits?)…",
    f"{_DOC} (?:can't|cannot|can not|could not|couldn't) (?:tell|help|answer)…",
    f"(?:nothing|neither|none|nowhere|no (?:passage|document|source|section|part|page|text|sentence))(?: (?:in|of|from|on|within) {_DOC})?(?: (?:here|there|i have|i've seen|i was given|i can see))? (?:does? |did )?(?:says?|mentions?|states?|specif(?:y|ies)|tells?|indicates?|describes?|discuss(?:es)?|explains?|address(?:es)?|lists?|names?|covers?|gives?|touche?s? on|talks? about|refers? to|answers?|deals? with|goes? into|speaks? (?:of|about|to)|relates? to|is said|is mentioned|is stated|concerns?)…",
    "(?:nothing|no word) (?:about|on|regarding|concerning) (?:that|this|it|the [a-z-]+|[a-z-]+)(?: [a-z-]+){0,3} (?:is|was|can be|could be|has been) (?:said|mentioned|stated|found|given)…",
    f"(?:nowhere|not once)(?: in {_DOC})? (?:is|are|does|do|did) §",
    "there(?:'s| is| was)(?: unfortunately| simply)?(?:n't anything| nothing| not anything)(?: [a-z]+)? (?:in|about|on|here|regarding|concerning|to say|to tell|to answer)…",
    f"there(?:'s| is| was| are| were)(?: unfortunately| currently| simply)?(?: no|n't any| not any|n't an?|n't enough| not enough|n't| not) (?:[a-z-]+ ){{0,2}}{_FACT}(?: (?:of|about|on|for|regarding|concerning|to|as to|in|from|that|whether|given|available|provided|here|there|made)…)?",
    f"(?:{_I} )?(?:found|see|saw|find|have found|can find|could find|can see|came across|come across|have) no (?:[a-z-]+ ){{0,2}}{_FACT}…",
    f"(?:{_I} )?(?:found|see|saw|find|have found|can find|could find|can see|came across|come across) nothing (?:about|on|regarding|concerning|in|there|of|that (?:answers|mentions|says|covers|addresses|tells|explains|would))…",
    f"{_I_CANNOT} (?:find|locate|see|spot|confirm|verify|make out|discover|tell|infer|derive|deduce|extract)…",
    f"{_I} (?:didn't|did not|don't|do not|haven't|have not) (?:find|see|seen|found|come across)…",
    f"§(?: is| are| was| were| has| have|'s)(?:n't| not| never| nowhere| unfortunately not| also not)(?: been)? {_MAYBE}{_GONE}(?: (?:anywhere|here|there|in|within|by|further|at all)…)?",
    f"§(?: is| are| was| were|'s)(?:n't| not| nowhere) (?:given|included|provided|listed|available|found|contained|recorded|part of|to be found|among|covered|in|answered)(?: (?:in|by|from|within|on|of|among))? {SOURCES}…",
    f"§(?: is| are| was| were)? (?:missing|absent|left out|omitted) (?:from|in|of) {SOURCES}…",
    f"(?:unknown|unclear|unspecified|not known|not clear) (?:from|in|based on) {_DOC}",
    f"§ (?:do not|does not|don't|doesn't|did not|didn't) (?:appear|come up|occur|feature|figure) (?:anywhere )?in {_DOC}…",
    f"no (?:[a-z-]+ ){{0,2}}{_FACT}(?: (?:of|on|about|regarding|concerning|for|as to|to|whether|in)…)?(?: (?:is|was|are|were|could be|can be|has been|have been) (?:made|found|given|available|provided|included|listed|stated|recorded|offered|located|present|there)…)?",
    "no § (?:is|are|was|were|has been|have been) (?:mentioned|stated|specified|indicated|named|documented|disclosed|described)…",
    "(?:it|that|this)(?:'s not| is not| isn't| was not| wasn't) (?:known|clear|stated|mentioned|specified|said|indicated|apparent|evident|obvious|recorded|documented|explained|discussed|possible to (?:say|tell|determine|know|answer))…",
    "(?:it|that|this|which)(?:'s| is| remains| was) (?:unclear|unknown|unspecified|left open|an open question|impossible to (?:say|tell|determine|know|answer))…",
    f"§(?: is| are| was| were| remains?) (?:unknown|unspecified|unclear|undisclosed|not known|not clear|left open) (?:in|from|based on) {_DOC}(?: (?:what|who|when|where|why|how|which|whether)…)?",
    # German
    "(?:§ )?(?:geht|gehen|wird|werden|ist|sind|steht|stehen|findet sich|finden sich|lässt sich|lassen sich|gibt es|enthalten|enthält|erwähnen|erwähnt|nennen|nennt|geben|gibt|sagen|sagt|machen|macht|liefern|liefert|beantworten|beantwortet|verraten|schweigen|schweigt|findet man|finde ich|konnte ich|fehlt|fehlen)(?: §)? (?:nicht|nichts|keine?n?r?|keinerlei|nirgends|schweigen)(?: §)? (?:hervor|erwähnt|angegeben|genannt|beschrieben|entnehmen|ablesen|angaben?|informationen|information|hinweise?|auskunft|antwort|gefunden|finden|enthalten|bekannt|geregelt|erklärt|beantworten|beantwortet|thematisiert|aufgeführt|dazu|darüber|hierzu|davon|aus|drin|sagen|beschreibung|aussagen?)(?: §)?",
    "(?:die|der|das|den|meine|ihre|deine|unsere)? ?(?:[a-zäöüss]+en? )?(?:dokumente?n?|kontext|texte?|quellen?|unterlagen|passagen?|informationen|abschnitte?|seiten?|artikel|broschüre|anzeige|handbuch|protokoll|vertrag|beschreibung|dokumentation)(?: [a-zäöüss]+)? (?:schweigen|schweigt|sagen|sagt|verraten|verrät|erwähnen|erwähnt|nennen|nennt|enthalten|enthält|geben|gibt|machen|macht|beschreiben|beschreibt|erklären|erklärt|beantworten|beantwortet|gehen|geht|liefern|liefert)(?: [a-zäöüss]+){0,3}(?: (?:nichts?|keine?n?r?|keinerlei|nicht))?…",
    "(?:es gibt|es finden sich|es findet sich|es liegen|gibt es)(?: hier| dort| dazu| leider| in [^\\s]+ [^\\s]+(?: [^\\s]+)?)* keine(?: genauen| weiteren| näheren)? (?:informationen|angaben?|hinweise?|daten|erwähnung|auskunft)…",
    "keine (?:informationen|angaben?|hinweise?|daten)…",
    "(?:steht|stehen|findet sich|finde ich|gibt es)(?: [a-zäöü]+){0,2} (?:nichts|keine (?:angaben?|informationen|hinweise))…",
    "(?:das|dies|es|davon|darüber|dazu) (?:steht|stehen|findet sich|ist) (?:leider )?(?:nicht|nichts) (?:in|auf|dazu|darüber|davon)…",
    # French
    "(?:§ )?(?:ne (?:le |la |les |l')?|n')(?:disent|dit|est|sont) pas(?: (?:indiqu|mentionn|précis|spécifi|abord|évoqu)[a-zéèêû]*)?(?:(?: (?:dans|par) (?:les?|la) [a-zéèêû]+)(?: §)?)?"
    if 0
    else "(?:§ )?(?:ne (?:le |la |les |l')?|n')(?:est|sont) pas (?:indiqu|mentionn|précis|spécifi|abord|évoqu)[a-zéèêû]*(?: §)?",
    "(?:les|la|le|mes|ces) (?:documents?|sources?|textes?|brochure|passages?) ne le (?:disent|dit|dise) pas(?: §)?",
    "(?:§ )?(?:ne |n')(?:est|sont) pas (?:indiqu|mentionn|précis|spécifi|abord|évoqu)[a-zéèêû]*(?: §)?",
    "(?:les|la|le|mes|ces) (?:documents?|sources?|textes?|brochure|passages?) ne le (?:disent|dit) pas(?: §)?",
    "(?:§ )?(?:ne |n')(?:§ )?(?:mentionn|précis|indiqu|parl|abord|évoqu|détaill|spécifi|renseign|di[st] )[a-zéèêû]*(?: §)?",
    _near(
        "(?:documents?|documentation|contexte|textes?|sources?|passages?|extraits?|articles?|informations?|données|page|brochure|sujet|question|réponse|mention|précision|renseignements?)",
        "(?:ne |n')(?:se |y |en )?(?:contien|donn|fourni|figur|répond|trouv|apparaî|perme|sont pas|est pas|a |ai |ont |di[st]|traite|explique|couvre)[a-zéèêû]*",
    ),
    "aucune? (?:information|mention|indication|détail|donnée|précision|réponse|document|source|passage)s?(?: n'est (?:donnée?|disponible|fournie?|indiquée?|trouvée?))?…",
    # Spanish
    "(?:§ )?no (?:se |lo |la |me |han? )?(?:menciona|especifica|indica|dice|aclara|detalla|precisa|habla)n?(?: §)?",
    _near(
        "(?:documentos?|documentación|fuentes?|textos?|pasajes?|contexto|información|materiale?s?|fragmentos?|artículos?|página|folleto|mención|respuesta|tema|pregunta)",
        "no (?:se |lo |la |me |le )?(?:contiene|proporciona|incluye|aparece|figura|consta|encuentra|hay|responde|ofrece|trata|está|he encontrado|he visto|encontré|encuentro|hace|hacen|aporta|da|dan|explica|recoge|describe|permite|existe|es posible|cubre|es suficiente|basta)n?",
    ),
    "(?:ninguna?|ninguno|ningún) (?:de )?(?:los |las )?(?:información|documentos?|fuentes?|textos?|pasajes?|mención|dato|detalle)…",
    # Italian
    "(?:§ )?non (?:si |lo |la |ne |viene |vengono |è |sono )?(?:menzion|specific|indica|indich|dice|dicono|precis|chiari|accenn|parla)[a-zàèéìòù]*(?: §)?",
    _near(
        "(?:documenti|documento|documentazione|font[ei]|test[oi]|contesto|passagg[io]+|informazion[ei]|materiale|articolo|pagina|opuscolo|menzione|risposta|argomento|domanda|indicazion[ei]|riferiment[io])",
        "non (?:si |lo |la |ne |mi )?(?:c'è|ci sono|vi è|vi sono|è|sono|contien|conteng|fornisc|riport|compa|figur|risult|trov|rispond|tratt|descri|ho trovato|ho visto|permett|offr|spieg|emerg|copr|bast)[a-zàèéìòù]*",
    ),
    "(?:nessuna|nessun|alcuna) (?:informazione|menzione|indicazione|documento|fonte|dettaglio|riferimento|dato)…",
    # Portuguese
    "(?:§ )?não (?:se |o |a |é |são |foi |foram )?(?:mencion|especific|indica|diz|dizem|esclarec|detalh|fala|referem?)[a-zãõáéíóúâêôç]*(?: §)?",
    _near(
        "(?:documentos?|documentação|fontes?|textos?|trechos?|contexto|informaç(?:ão|ões)|materia(?:l|is)|artigo|página|folheto|menção|resposta|assunto|pergunta|passagens|referência)",
        "não (?:se |o |a |me |lhe )?(?:há|é|são|está|estão|existe|contém|contêm|fornec|inclu|aparec|const|encontr|achei|vi|respond|abord|informa|trat|descrev|permit|oferec|expli|cobr|bast)[a-zãõáéíóúâêôç]*",
    ),
    "(?:nenhuma?) (?:informação|menção|indicação|documento|fonte|detalhe|referência|dado|d[oa]s documentos|d[oa]s fontes)…",
    # Dutch
    "(?:§ )?(?:wordt|worden|werd|is|zijn)(?: §)? (?:niet|nergens)(?: §)? (?:vermeld|genoemd|aangegeven|besproken|gespecificeerd|toegelicht)(?: §)?",
    _near(
        "(?:documenten|document|documentatie|bronnen|bron|teksten?|context|informatie|gegevens|passages?|artikel|pagina|brochure|materiaal|stukken|vermelding|antwoord|onderwerp|vraag|daarover|hierover)",
        "(?:bevat|bevatten|vermeldt|vermelden|noemt|noemen|geeft|geven|zegt|zeggen|staat|staan|is|zijn|wordt|worden|blijkt|vind|vindt|gaan|gaat|valt|kon|kan|heb|beschrijft|beschrijven|spreekt|spreken|beantwoordt|beantwoorden|vond|zie|maakt|maken)(?: ik| me| dit| dat| daar| er| hier| helaas| je| u)*(?: §)? (?:niet(?:s)?|geen|nergens)",
    ),
    "(?:de|het|mijn|deze)(?: [a-z]+)? (?:documenten|document|bronnen|teksten?|context|passages?|artikel|pagina|brochure) (?:zwijgt|zwijgen|zegt niets|zeggen niets)…",
    "§(?:staat|staan|blijkt|vind ik|wordt|is) (?:er |hier )?(?:niet|niets|nergens)(?: §)? (?:in|uit) (?:de|het|mijn|deze)(?: [a-z]+)? (?:documenten|document|bronnen|teksten?|informatie|context|passages?|stukken|materiaal)(?: §)?",
    "geen (?:informatie|gegevens|vermelding|details)…",
    "(?:de|het|mijn|deze) (?:documenten|document|bronnen|teksten?|context|brochure) (?:vermeldt|vermelden|noemt|noemen|zegt|zeggen|geeft|geven) (?:[^\\s\\d]+ ){1,4}niet",
    "(?:er )?sta(?:at|an)(?: daar| er| hier| hierover| daarover)? (?:niets|geen [a-z]+)…",
    # Polish
    "(?:§ )?nie (?:wspomin|podaj|podan|określ|wymieni|precyzuj|wspomnian|wskaz|informuj|mówi)[a-ząćęłńóśźż]*(?: §)?",
    _near(
        "(?:dokument[a-ząćęłńóśźż]*|źród[a-ząćęłńóśźż]*|tekst[a-ząćęłńóśźż]*|kontekst[a-ząćęłńóśźż]*|informacj[a-ząćęłńóśźż]*|materia[a-ząćęłńóśźż]*|fragment[a-ząćęłńóśźż]*|artyku[a-ząćęłńóśźż]*|stron[a-ząćęłńóśźż]*|wzmiank[a-ząćęłńóśźż]*|odpowiedzi|temat[a-ząćęłńóśźż]*|pytanie|danych|treści)",
        "nie (?:ma|zawier|wynika|znajduj|odpowiad|opisuj|opisan|jest|są|został|można|da|dotycz|porusz|znalazł|widzę|udało|pozwala|obejmuj|wystarcz|mam)[a-ząćęłńóśźż]*",
    ),
    "brak(?:uje)?(?: §)? (?:informacji|danych|wzmianki|odpowiedzi|szczegółów|wskazówek)…",
    # Japanese and Chinese
    "§(?:情報|記載|言及|説明|記述|回答|答え|データ|資料|内容|該当|詳細|項目|箇所)(?:は|が|も|の)?§(?:ありません(?:でした)?|ございません(?:でした)?|見つかりません(?:でした)?|見当たりません(?:でした)?|含まれていません|含まれておりません|されていません|されておりません|不足しています|存在しません|得られません(?:でした)?|確認できません(?:でした)?|ないようです|載っていません|書かれていません|なし)",
    "§(?:触れられていません|触れていません|書かれていません|書かれておりません|載っていません|記されていません|述べられていません|示されていません|説明されていません|明記されていません|記載されていません|言及されていません|見つかりませんでした|見つかりません|読み取れません|わかる情報がありません|見当たりません)",
    "含まれていません",
    "§(?:文档|文件|上下文|资料|文本|文章|信息|内容|材料|文中|段落|来源|说明|手册|页面|其中|里面|原文)(?:中|里|里面|内)?§(?:没有|未|没|并未|并没有|不包含|不含|未曾|缺少)§",
    "§(?:没有|未|并未|没|并没有)(?:提到|提及|说明|提供|包含|指出|记载|注明|涉及|写明|列出|介绍|明确|具体说明|给出|标明|说|写|谈到|描述)§",
    "(?:没有|没能|未能|未|没|暂无|无|查无|缺乏)(?:找到|查到|检索到|发现|看到|相关)?§(?:信息|资料|内容|说明|记录|答案|数据|结果)",
)
"""The sources lack the fact."""

MORE_SOFTENER = (
    "(?:i|we) regret(?: to say)?(?: that)?|i must (?:admit|confess|say)(?: that)?|i have to (?:admit|say)(?: that)?|as far as i (?:can (?:see|tell)|know)|to (?:the best of )?my knowledge",
    f"(?:from|based on|given|with|using|going by|judging by|looking at|having checked|having read|having looked through|i checked|i have checked|i've checked|i looked through|i searched|i have searched|i've searched|i went through|i read) (?:only |just |what |all )?(?:{_DOC}|what (?:i have|i've got|i was given|is here|is available)(?: here)?|here)(?: (?:carefully|alone|twice))?",
    "in (?:my|the) (?:documents|sources|passages|materials)(?: here)?",
    "oh|ah|um|uh|oops|good question|great question|that's a good question|that is a good question|interesting question|thanks for asking|thank you for asking|thank you for your question|thanks for your question|thank you for your patience|sadly|alas|i'm truly sorry|my apologies|i apologi[sz]e|pardon|right now|for now|at present|as of now|at this point|in short|in this case|so far|still",
    "leider|bedauerlicherweise|entschuldigung|(?:das |es )?tut mir (?:sehr |wirklich )?leid|verzeihung|gute frage|danke für (?:ihre|deine|die) (?:frage|anfrage)|ich bedauere|ich fürchte|ehrlich gesagt|nach (?:den|meinen) (?:vorliegenden )?(?:unterlagen|informationen)|(?:in|anhand|aus|nach|laut)(?: den| der| dem| meinen)?(?: [a-zäöüss]+en)? (?:dokumenten?|unterlagen|quellen|texte?n?|kontext|informationen|passagen)",
    "(?:je suis )?(?:vraiment |sincèrement )?désolée?|malheureusement|pardon|hélas|excusez-moi|je regrette|toutes mes excuses|je crains que|bonne question|merci pour votre question|d'après (?:les|mes|le) [a-z]+|(?:dans|selon) (?:les|mes|le) (?:documents?|sources?|textes?|informations|passages?)(?: (?:fournis?|disponibles?))?",
    "lo (?:siento|lamento)(?: mucho)?|lamentablemente|desafortunadamente|por desgracia|desgraciadamente|perdón?e?|disculpe|mis disculpas|me temo que|buena pregunta|gracias por (?:su|tu) (?:pregunta|consulta)|(?:según|en|con) (?:los|las|el|la) (?:documentos?|fuentes?|textos?|información|pasajes?)(?: (?:disponibles?|proporcionad[oa]s?))?",
    "mi dispiace(?: molto)?|purtroppo|spiacente|sono spiacente|scusi|scusa|mi scuso|temo che|buona domanda|grazie per la (?:sua |tua )?domanda|(?:secondo|in base a|con|nei|nel|dai) (?:i |le |il )?(?:documenti|fonti|testo|testi|informazioni|passaggi)(?: (?:disponibili|forniti))?",
    "desculpe|desculpa|peço desculpas?|infelizmente|lamento(?: muito)?|sinto muito|receio que|temo que|boa pergunta|obrigad[oa] pela (?:sua )?pergunta|(?:segundo|de acordo com|com base em|n[oa]s|n[oa]) (?:os |as |o |a )?(?:documentos?|fontes?|textos?|informações|trechos?)(?: (?:disponíveis|fornecid[oa]s))?",
    "helaas|het spijt me(?: zeer)?|sorry|excuses|mijn excuses|jammer genoeg|ik vrees dat|goede vraag|bedankt voor (?:uw|je) vraag|(?:volgens|in|op basis van|uit) (?:de|het)(?: beschikbare| verstrekte)? (?:documenten|bronnen|tekst|teksten|informatie|passages)",
    "niestety|przykro mi|przepraszam|bardzo mi przykro|obawiam się|wybacz(?:cie)?|z przykrością|żałuję|dobre pytanie|dziękuję za pytanie|(?:według|na podstawie|w|z)(?: dostępnych| podanych| dostarczonych)? (?:dokumentów|dokumentach|źródeł|źródłach|tekstu|tekście|informacji|materiałów|materiałach)",
)
"""Phrases that may come before, besides those of `phrases.py`."""

MORE_SOFTENER_UNSPACED = (
    "(?:大変|誠に|まことに)?(?:申し訳|恐れ入りますが|恐縮ですが|あいにく(?:です)?(?:が)?|ごめんなさい|失礼ですが|お問い合わせありがとうございます|ご質問ありがとうございます|承知しました|確認しましたが|調べましたが|お調べしましたが)(?:ありません|ございません|ないのですが|ございませんが)?(?:が)?",
    "(?:いただいた|お預かりした|ご提供の|手元の|利用可能な|参照した)+(?:資料|文書|文脈|コンテキスト|情報|ドキュメント|テキスト)(?:には|に|からは|から|では|で|によると)",
    "(?:非常|十分|实在|真)?(?:遗憾|可惜|不巧|抱歉|对不起|不好意思|很遗憾|感谢您的提问|谢谢您的提问|您好)(?:的是)?",
    "(?:在|从|就|依据|按照|根据|基于)(?:我|目前|所|提供的|提供|给定的|给出的|上述|现有的?|已有的?|手头的?|这些|相关|可用的?|我掌握的|所掌握的)*(?:文档|文件|上下文|资料|文本|文章|信息|内容|材料)(?:中|里|来看|看|之内)?",
)

STATES = (
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|may|might|must|should|does|do|did|gets?|got|costs?|closes?|opens?|receives?|pays?|takes?|lasts?|begins?|starts?|ends?|includes?|offers?|needs?|allows?|to be|to have|"
    r"gives?|provides?|charges?|requires?|runs?|comes?|goes|makes?|became|becomes?|remains?|stays?|works?|means|says|shows?|won|lost|died|said|it's|that's|he's|she's|there's|you're|they're|"
    r"kostet|kosten|beträgt|ist|sind|wird|hat|öffnet|schliesst|sont|coûte|ouvre|ferme|cuesta|cuestan|abre|cierra|tiene|costa|costano|apre|custa|custam|fecha|kost|zijn|heeft|opent|jest|są|kosztuje|otwiera|wynosi)\b"
    "|免费|无需|因此|所以|価格は|無料|ですが"
)
"""Verbs by which an open end would state something."""
ASKS = (
    r"\b(?:who|whom|whose|what|when|where|which|why|how|whether|if|ob|wann|wer|wen|wem|was|wie|wo|warum|welche[rsnm]?|si|s'il|s'ils|quand|qui|quoi|quel(?:le)?s?|comment|combien|où|pourquoi|qué|quién|cuándo|dónde|cómo|cuál|cuánt[oa]s?|"
    r"se|quando|chi|cosa|dove|come|quant[oaie]|quem|qual|onde|como|of|wanneer|wie|wat|hoe|waar|hoeveel|czy|kto|co|kiedy|jak|ile|gdzie|dlaczego|jaki|jaka|jakie|który|która|które)\b"
)
"""Behind one of these a verb belongs to what is asked."""
