"""The wordings of threats and of encouragement to self-harm in English, as RE2 patterns.

A model of toxicity learns insults; "we know where you live" holds none. Each wording speaks to the
reader or calls for violence against people; what only looks like it is spared, and so is a hit in
a quotation that somebody is named for, or behind a word of reporting. Only constants here.
"""

# One wording a line: a wrapped one is harder to check than a long one.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from guardrail_service.text.patterns.search import Pattern, PatternSet, compile_regex

WORDINGS_VERSION: Final = "rag-guardrail-threats/1"
"""Part of toxicity's fingerprint: raise it when any wording is found or spared differently."""

Wordings = tuple[tuple[str, str], ...]
"""Texts of which every match holds one, between bars, and the pattern; `'` stands for both."""
_KIN = r"(?:famil(?:y|ies)|kids?|child|children|sons?|daughters?|wife|wives|husband|mother|father|mom|mum|dad|parents|baby|brother|sister|girlfriend|boyfriend|loved ones|grandmother|friends)"
_WE = r"(?:\b(?:i|we)(?:'ll|'d| would| will| shall|'m going to|'re going to| am going to| are going to|'m gonna|'re gonna| gonna|'d love to| would love to| want to|'m about to|'re about to| swear i'll| promise to| have to|'m coming to|'re coming to))(?: (?:personally|just|gladly|happily|really|fucking|simply|now|then|also|come|come over|come there|come back|find you|hunt you down|track you down|and|be forced to|have to|go and|enjoy|make sure to))*"
_YOU = rf"(?:you\b|your (?:\w+ )?{_KIN}\b|(?:every|each) (?:last )?(?:single )?one of (?:you|them|these|those)\b|all of (?:you|them)\b)"
_KILL = r"(?:kill|murder|shoot|stab|strangle|choke|behead|slaughter|butcher|skin|gut|drown|torture|rape|bury|burn|poison|lynch|hang|maim|cripple|destroy|end|hurt|hit|knife|cut you up|tear you apart|beat the (?:crap|shit|hell) out of)"
_DONE = r"(?:shot|hanged|hung|killed|murdered|lynched|drowned|gassed|burned|burnt|beaten|raped|exterminated|eradicated|wiped out|executed|stoned|castrated|sterili[sz]ed|beheaded|whipped|flogged|slaughtered|put to death)"
_LIMB = r"(?:neck|necks|legs?|arms?|face|faces|skulls?|throat|throats|heads?|bones|fingers?|kneecaps?|knees|teeth|jaw|ribs|hands?|nose|brains?|eyes|tongue|guts|back)"
_PEOPLE = r"(?:people|persons|men|women|girls|boys|foreigners|immigrants|migrants|refugees|muslims|jews|christians|hindus|arabs|blacks|whites|asians|mexicans|gays|lesbians|homosexuals|transgenders?|the homeless|beggars|politicians|journalists|reporters|teachers|doctors|nurses|cops|policemen|judges|lawyers|feminists|gypsies|atheists|protesters|liberals|conservatives|bankers)"
_PLACE = r"(?:house|home|shop|office|car|flat|apartment|church|mosque|synagogue|temple|school|building|store|bar|club)"
_MUST = r"(?:should|ought to|must|needs? to|deserves? to|has to|have to|had better|better)"
_SELF = r"(?:(?:kill|hang|shoot|drown|poison|off|unalive|starve|stab) yourself|end your (?:own )?(?:miserable |pathetic )?life\b|end it all|take your own life|commit suicide|jump (?:off|from) (?:a|the) (?:\w+ )?(?:bridge|roof|building|cliff|tower|balcony)|slit your (?:own )?(?:wrists?|throat)|swallow (?:all (?:of )?(?:the|your) pills|the whole bottle)|take all (?:of )?(?:the|your) (?:sleeping )?pills|drop dead\b)"
_OWN = r"(?:suicide|killing yourself|ending your life|ending it all|overdosing|cutting yourself|hurting yourself|harming yourself|self-harm|starving yourself|hanging yourself|purging|throwing up after (?:every meal|each meal|meals|eating))"
_NOBODY = r"(?:nobody|no one|no-one)"

# fmt: off
THREATS: Wordings = (
    ("you|them|these|those", rf"{_WE} {_KILL} {_YOU}"),
    ("you", rf"{_WE} (?:silence you (?:for good|forever)|feed you to|rip you (?:apart|to pieces|open)|tear you (?:apart|to pieces)|drag you (?:out|into|behind|by)|run you over\s*(?:[.!,]|with|$)|cut you\s*(?:[.!]|$)|set you on fire|choke the life out of you|make an example (?:out )?of you|throw you (?:off|under|out of a window|in front of))"),
    ("on fire|acid", rf"{_WE} (?:set your (?:\w+ )?(?:hair|{_PLACE}|dog|cat) on fire|throw acid (?:in|at|on|into) (?:you\b|your))"),
    ("watch you|see you", r"\b(?:want|love|like|going|can't wait|cannot wait|live) to (?:watch|see) you (?:burn|die|bleed|suffer|hang|choke|beg|drown)\b"),
    ("hope", rf"\bhope (?:that )?(?:(?:someone|somebody|they|a \w+) (?:rapes?|kills?|shoots?|stabs?|beats?|murders?|runs) (?:over )?(?:you|your {_KIN})|you (?:die\b|rot\b|burn\b|choke\b|drown\b|suffer\b|bleed\b|get (?:shot|raped|killed|cancer|stabbed|hit by)))"),
    ("you", r"\byou (?:should|ought to|must|need to|deserve to) be (?:\w+ )?(?:dragged (?:out|into|through|behind)|shot\b|hanged|hung|beaten|stabbed|lynched|raped|burned alive|put down like|skinned|gassed)"),
    ("you", r"\byou(?:'ll| will|'re going to| are going to) be (?:hanging from|dead by|lying in a (?:grave|coffin|ditch|pool)|shot dead|six feet)"),
    ("you won't|you will not|you'll not", r"\b(?:my (?:street|house|shop|door|town)|here again|near me)\b[^.!?]{0,30}\byou (?:won't|will not) (?:walk|make it|get|come) (?:home|out|back)"),
    ("end of|another|sunrise|tomorrow|daylight", r"\byou(?:'ll|'re)?(?: will| won't| will not| not going to| are not going to)?(?: never)? see (?:the end of (?:this|the) (?:week|day|month|year)|another (?:day|sunrise|birthday|christmas)|the (?:next )?sunrise|tomorrow|daylight again)"),
    ("police|cops|press|anyone|anybody|a word", rf"\b(?:(?:talk|go|run|speak) to the (?:police|cops|press)|tell (?:anyone|anybody)|say a word)\b[^.!?]{{0,25}}\b(?:you|your (?:\w+ )?{_KIN}) (?:dies?|will die|gets? hurt|will get hurt|bleeds?|will bleed|pays?|will pay|disappears?|will disappear)"),
    ("your", rf"{_WE} (?:come |be there )?(?:at night|tonight|when you (?:are asleep|sleep))[^.!?]{{0,15}}(?:take|get|snatch|grab|visit) your {_KIN}"),
    ("your", r"\b(?:outside|at|in front of|on my way to) your (?:house|home|door|window|office|flat)\b[^.!?]{0,15}\bwith (?:a|an|my|our|the) (?:\w+ )?(?:hammer|knife|gun|bat|axe|machete|rope|crowbar|shotgun|rifle)"),
    ("rope|bullet|grave|coffin|noose", r"\b(?:rope|bullet|grave|coffin|noose) (?:is waiting for you|waits for you|with your name)|\b(?:get|gets|deserves?|needs?) (?:a|the|nothing but a) (?:bullet|rope|noose)\b"),
    ("your", rf"\b(?:someone|somebody|they|my (?:friends|brothers|boys|guys)|our (?:friends|boys|guys)|he) (?:will|'ll|is going to|are going to|should|ought to) (?:crack|smash|bash|break|slit|cut|knock out|cave in|rearrange) your {_LIMB}"),
    ("hang|die", rf"\b(?:{_PEOPLE}|traitors)(?: who [^.!?,]{{1,40}}| like (?:you|these|those|that|them))? (?:should|must|ought to|deserve to)(?: all)? (?:hang|die)\s*(?:[.!]|$)"),
    ("pray|beg", r"\bpray (?:that )?(?:we|i) (?:never|don't) (?:meet|find you|see you|come)|\b(?:pray|beg) for your life\b"),
    ("off a|off the", rf"\b(?:someone|somebody|we|i|they) (?:{_MUST}|will|'ll) throw (?:you|them|him|her|these|those|this)(?: \w+)? off (?:a|the) (?:roof|bridge|cliff|building|balcony|train)"),
    ("death warrant", r"\byou(?:'ve| have)?(?: just)? signed your (?:own )?death warrant"),
    ("with your", r"\b(?:pay|pays)(?: for (?:this|that|it))? with your (?:life|blood|own blood)\b"),
    ("bleed|die|suffer", r"\b(?:hand over|give (?:me|us)|pay(?: up)?)\b[^.!?]{0,40}\bor (?:you(?:'ll| will) )?(?:bleed|die|suffer)\s*(?:[.!]|$)"),
    ("lock your door", r"\block your doors? (?:tonight|well|if you)\b[^.!?]{0,40}(?:need it|coming|we come)"),
    ("without", r"\bsee how \w+ you (?:are|look|walk|type|talk) without (?:teeth|fingers|legs|hands|kneecaps|a tongue)\b"),
    ("your name|your face", r"\b(?:i|we) know your (?:name|face)[^.!?]{0,30}(?:address|where you live|your family)"),
    ("your", rf"{_WE} (?:break|smash|bash|crush|cut|slit|rip|snap|cave|kick|tear|slash|chop|gouge|beat|ruin|wreck|rearrange|crack) (?:in |off |out |both (?:of )?|all (?:of )?)*your (?:\w+ )?{_LIMB}\b"),
    ("beat you", r"\b(?:i|we|i'll|we'll|will|going to|gonna|come over and|come and) beat you (?:up\b|senseless|to death|to a pulp|bloody|black and blue|until you)"),
    ("hunt|track", rf"\b(?:hunt|track) (?:you|your {_KIN}) down and (?:\w+ )?(?:kill|gut|shoot|hurt|end|break|make you)"),
    ("to hurt you|to kill you|to beat you|to shoot you", r"\b(?:send|sent|sending|pay|paid|paying|know|have) (?:someone|somebody|people|men|guys|a man|my \w+|our \w+) (?:who'll |who will |over |round |around )?to (?:hurt|kill|beat|shoot) you"),
    ("bullet", rf"\b(?:put|putting|fire) (?:a|this|one|two|some) bullets? (?:in|into|through) (?:your|his|her|their) (?:\w+ )?{_LIMB}|\bdeserves? (?:a|nothing but a) bullet\b"),
    ("burn|torch|firebomb|blow up|set fire", rf"(?:{_WE}|\b(?:someone|somebody) {_MUST}) (?:burn(?: down)?|torch|blow up|firebomb|set fire to) (?:your|that|this|their|the) (?:\w+ )?{_PLACE}\b"),
    ("hope your", rf"\bhope(?: that)? your (?:\w+ )?(?:{_PLACE}|{_KIN}) (?:burns|dies|die|burn|gets? (?:shot|killed|raped))"),
    ("dead", r"\byou(?:'re| are)(?: all)? (?:a dead (?:man|woman|girl|boy)|dead meat|as good as dead)\b"),
    ("alive", r"\byou(?:'ll| will| won't| are)?(?: not| never|'re not)? (?:going to )?(?:leave|get out of|come out of|make it out of) (?:here|there|this \w+|that \w+|the \w+|our \w+) alive\b"),
    ("you won't|you will not|not going to", r"\byou(?:'re| are)? (?:won't|will not|not going to) (?:live|survive) (?:to see|to tell|the night|the week|this\b|tonight|long enough)"),
    ("die|bleed|suffer", r"\byou(?:'ll| will|'re going to| are going to|'re gonna) (?:die|bleed|suffer|scream)(?: and die)? (?:screaming|slowly|tonight|for this\b|for that\b|for what you|in agony|in pain|like a (?:dog|pig|rat))"),
    ("one eye open", r"\bsleep with one eye open\b"),
    ("numbered", r"\byour days (?:here )?are numbered\s*(?:[.!;]|$|, (?:you|my|and))"),
    ("where you|where your", rf"\b(?:i|we)(?: all| also)? (?:know|found out|have found out|found) (?:exactly )?where (?:you|your {_KIN}) (?:lives?|sleeps?)\b"),
    ("which school|what school|which kindergarten|where your", rf"\b(?:i|we) know (?:which|what|where) (?:school |kindergarten |street |bus )?your {_KIN} (?:goes|go|takes?|plays?|walks?|is|are)\b"),
    ("coming for you", rf"\b(?:i|we)(?:'m| am|'re| are) coming for (?:you\b|your (?:\w+ )?{_KIN}\b)"),
    ("your", rf"\byour (?:whole |entire )?{_KIN} (?:will|are going to|is going to) (?:bleed|be next|die\s*[.!]|pay for (?:what|this|that)\b|suffer for (?:what|this|that)\b|regret what you)"),
    ("make you", rf"\b(?:find you and|i'll|we'll|i will|we will|going to|gonna) make (?:you|your {_KIN}) (?:suffer|bleed|scream|beg|disappear|regret (?:the day|being born)|wish you were (?:dead|never))"),
    ("never walk|never talk|never speak|never breathe|never wake", r"\bmake (?:sure|certain) (?:that )?you(?:'ll| will)? never (?:walk|talk|speak|breathe|wake)\b"),
    ("put you in", r"\b(?:i|we|they)(?:'ll| will|'m going to|'re going to| am going to| are going to) put you (?:in (?:a|the|your) (?:grave|ground|morgue|coffin|wheelchair|box)|six feet under|in (?:the )?hospital\s*[.!])"),
    ("ditch|body bag|morgue|coffin|the river", r"\b(?:keep|stop|one more|again|watch your (?:step|mouth|tongue))\b[^.!?]{0,40}\byou(?:'ll| will|'re going to| are going to)? end up (?:dead )?in (?:a|the) (?:ditch|river|body bag|morgue|grave|coffin|trunk)"),
    ("find your", rf"\b(?:{_NOBODY}(?: will| is going to|'ll)(?: ever)?|they(?: will|'ll)(?: never)?) find your (?:dead )?(?:body|corpse|remains|bones)\b"),
    ("goodbye to your", rf"\bsay goodbye to your (?:dog|cat|legs|life|{_KIN})\b[^.!?]{{0,30}}(?:won't|will not|you will never|you'll never)"),
    ("you ever|you'll ever|you will ever", r"\b(?:last|final) (?:thing|mistake|word|breath|question) (?:that )?you(?:'ll| will)? ever (?:do|see|say|hear|make|take|ask)\b"),
    ("carry you out", r"\bcarry you out\b[^.!?]{0,30}\bin a (?:box|bag|body bag|coffin)\b"),
    ("snitches", r"\bsnitches get stitches\b"),
    ("prepare to die", r"\bprepare to die\b"),
    ("watch your back", r"\bwatch your back(?: (?:when|if|while) you (?:walk|go|leave|come|sleep|drive)|[,.;]? [^.!?]{0,40}\baccidents?\b| from now on)"),
    ("be a shame|be a pity", r"\b(?:be|such) a (?:real )?(?:shame|pity) if (?:something|anything|an accident) (?:bad |terrible )?(?:happened|were to happen|should happen) to (?:you|your)"),
    ("like you", r"\b(?:accidents|bad things) (?:can |do |will |tend to )?happen to (?:people|customers|users|men|women|those) (?:like you|who (?:complain|talk|ask))|\b(?:we|i) (?:shoot|kill|hang|lynch|bury|beat|burn) people like you\b|\bpeople like you (?:should|must|ought to|deserve to|need to) (?:be (?:shot|hanged|killed|gassed|beaten|raped|burned)|die|disappear)"),
    ("when we come|when i come|when we show up|when i show up|when we find|when i find", r"\byou(?:'ll| will) regret[^.!?]{0,30}when (?:i|we) (?:come|show up|find)"),
    ("knife|gun|bats|machete|petrol|axe", r"\b(?:on (?:my|our) way|com(?:e|ing) (?:over|to your (?:house|door|home|office|place))|(?:have|know|got) your address)[^.!?]{0,50}\b(?:knife|knives|guns?|baseball bats?|bats|machetes?|axes?|petrol)\b"),
    ("or we will delete you|or i will delete you|or we'll delete you|or i'll delete you", r"\bor (?:i|we)(?:'ll| will) delete you\s*(?:[.!]|$)"),
    ("someone|somebody", rf"\b(?:someone|somebody) (?:please |really |finally |just )?{_MUST}(?: just| finally| really)? (?:kill|murder|stab|hang|strangle|drown|rape|behead|lynch|gas|shoot|beat|poison)(?: up)? (?:you|him|her|these people|those people|all of you|you all|(?:that|this|the) (?:reporter|journalist|teacher|judge|nurse|doctor|cop|officer|politician|minister|mayor|boss|manager|neighbour|woman|man|girl|boy|kid|guy|traitor|bastard)|every (?:\w+ )?(?:one of|last)|all (?:these|those|the) (?:\w+ )?{_PEOPLE})\b"),
    ("should|ought|must|need|deserve|have to", rf"\b(?:these |those |such |all |every (?:one of |last one of )?(?:these |those )?)?(?:{_PEOPLE}|(?:people|men|women|journalists|politicians) of this kind)(?: like (?:you|these|those|that|them))?(?: who [^.!?,]{{1,40}})? {_MUST}(?: all)? (?:to )?be {_DONE}\b"),
    ("you deserve", rf"\byou deserve to be (?:\w+ )?{_DONE}\b"),
)
"""Threats against the reader, and calls for violence against people."""
SELF_HARM: Wordings = (
    ("yourself|life|it all|suicide|jump|slit|swallow|pills|drop dead", rf"\b(?:you (?:should|ought to|must|need to|can just|might as well|may as well|(?:had )?better)|you'd better|why (?:don't you|not)|(?:please|simply|just|maybe),?|go(?: and| ahead and)?|i (?:think|suggest|recommend|say|propose)(?: that)? you(?: should)?|favou?r,? and|i'd|i would|you can stop \w+ and)(?: (?:just|go|and|really|simply|please|should|finally|then|all))* {_SELF}"),
    ("yourself", r"(?:^|[.!?:;]\s+|, )(?:kill|hang|shoot|drown|unalive|off) yourself\b"),
    ("pills", r"\bfavou?r[^.!?]{0,12}\b(?:take|swallow) all (?:of )?your pills\b"),
    ("better off without you|better off if you", rf"\b(?:world|everyone|everybody|they|we|people|all of us|(?:your|the) {_KIN})(?: would| will|'d|'ll) be (?:so much |much |a lot |far )?better off (?:without you\b|if you (?:were (?:dead|gone)|died|disappeared|killed))"),
    ("better off dead|as well be dead", r"\byou(?:'d| would|'re| are)(?: be)? better off dead\b|\byou (?:might|may) (?:just )?as well be dead\b"),
    ("miss you|notice|mourn you|if you died|if you were", rf"\b{_NOBODY} (?:would|will|'d|'ll|is going to)(?: even| really| ever)? (?:(?:miss|mourn) you\s*(?:[.,!;]|$|anyway|when you are gone|when you're gone|if you (?:died|were))|(?:notice|care|cry) if you (?:were (?:gone|dead)|died|disappeared|killed))"),
    ("to die|to live|to exist|to breathe", r"\byou (?:deserve to die|(?:don't|do not) deserve to (?:live|exist|breathe))\b"),
    ("living|live for|to live|alive", r"\b(?:there is|there's|you have|you've got) (?:no (?:reason|point)|nothing)(?: left| anymore)?(?: for you)? (?:to|in) (?:go(?:ing)? on living|keep living|live\b|living\b|stay(?:ing)? alive)"),
    ("suicide|yourself|life|overdosing|self-harm|purging|throwing up|it all", rf"\b{_OWN},? (?:is|are|would be) (?:probably |clearly |really |actually |simply |just |perhaps |certainly |now )*(?:(?:the|your) (?:best|only|easiest|right|quickest|logical|obvious|smartest) (?:remaining )?(?:option|way|thing|solution|choice|answer|decision|exit)|(?:a|an) (?:good|great|brave|beautiful|noble|sensible|honou?rable|smart|wise|reasonable) (?:way|idea|option|solution|choice|decision|thing)|(?:perfectly )?(?:fine|ok|okay|normal) (?:and|for you|as long))"),
    ("yourself", r"\b(?:cutting|hurting|harming|burning) yourself (?:will|can) (?:really )?(?:make you feel (?:alive|better|good)|help you)\b"),
    ("time for you|time to end your life", r"\btime (?:for you to (?:die|end (?:it all|your life)|kill yourself|go for good)|to end your life)\b"),
    ("you can do is|you could do is|you can do now is", r"\bbest (?:thing )?(?:that )?you (?:can|could) do (?:now )?is (?:to )?(?:just )?(?:die\b|kill yourself|disappear for good|end (?:it all|your life))"),
    ("if i were you|in your place", r"\b(?:if i were you|in your place),? i(?:'d| would) (?:just |simply )?(?:kill|hang|shoot|drown|jump|slit|swallow the whole|swallow all|take all|end my life|end it)"),
    ("your death", r"\byour death would be (?:a (?:relief|blessing|gift|favou?r)|the best|welcome)"),
    ("kys", r"(?:^|[\s,.!])kys(?:[\s,.!]|$)"),
    ("die", r"\b(?:go|(?:you should|you ought to|please|why don't you)(?: just| all)?(?: give up and| go and)?|think you should give up and) die\b(?: in a (?:fire|hole|ditch))?\s*(?:[.!?,]|$|already|alone)"),
    ("die in a fire|die in a hole", r"\b(?:go|just|please) (?:and )?die in a (?:fire|hole|ditch)\b"),
    ("cut deeper|cut a bit deeper", r"\b(?:cut (?:a bit |a little )?deeper) next time\b"),
    ("rope", r"(?:^|[.!?]\s+)(?:take|use|get) (?:the|a) rope\b[^.!?]{0,30}(?:quick|painless|over|hang)"),
    ("disappear|vanish", r"\byou should (?:just )?(?:disappear|vanish) (?:for good|forever)\b"),
    ("burden", r"\byou(?:'re| are) (?:a|nothing but a|just a) burden[^.!?]{0,40}\b(?:dying|your death|if you died|without you)"),
    ("starve yourself", r"(?:^|[.!?:;]\s+|\bjust |\bsimply |\bgo and )starve yourself for (?:a|one|two|three|some|\d+) (?:weeks?|days?)\b"),
    ("throwing up|vomiting|purging|starving yourself", r"\b(?:throwing up|vomiting|purging|starving yourself)\b[^.!?]{0,40}\b(?:keeps you (?:slim|thin)|is fine|nobody (?:has|needs) to know)"),
    ("bleach", r"(?:^|[.!?:;,]\s+|\b(?:go|please|just|and|you should|should) )drink (?:some |a cup of |a glass of )?bleach\b"),
    ("off yourself", r"(?:^|[.!?:;,]\s+)off yourself\b"),
)
"""Encouragement of the reader to die or to hurt themselves."""

SPARED_BEFORE = compile_regex(
    r"(?i)\b(?:(?:not|never|don't|won't|wouldn't|cannot|can't|doesn't|didn't|isn't|nobody|no one|without|avoid|stop|instead of|rather than|if you (?:feel|think|believe|are thinking|want|plan|hear)|feels?|feeling|felt|thinks?|thinking|thought|thoughts|believes?|belief|believing|convinced|worr(?:y|ied)|fears?|afraid|imagine|pretend|as if|whether|myth|untrue|wrong|lie|sentences?|signs?|such as|symptoms?)\b[^.!?,;]*"
    r"|(?:says?|said|saying|tells?|telling|told|writes?|wrote|written|claims?|claimed|demand(?:s|ed)|threatens?|threatened|shout(?:s|ed)|posts?|posted|tweet(?:s|ed)?|message|messages|letters?|quot(?:e|es|ed)|called|reads?|promis(?:es|ed)|warn(?:s|ed)|testified|alleged|according|condemn(?:s|ed)?|lyrics?|song|film|novel|villain|character|game|laws?|statute|court|ordered|decreed|century)\b[^.!?]*)$",
    "what spares a wording behind it",
)
"""A denial or a thought in the same clause, a report in the same sentence."""
SPARED_YOU = compile_regex(
    r"(?i)^(?: (?:an? |the |some |with (?:kindness|love|laughter|questions|paperwork|a smile)|at |by (?:\d|bus|car)|to it\b|(?:in|on|around|about) (?:\d|chess|monday|tuesday|wednesday|thursday|friday|saturday|sunday|the (?:game|final|court|field|pitch|first|second|next)|this (?:game|round))|(?:down|up) (?:a|an|the|some) ))",
    "what spares a wording that ends in you",
)
"""An object or a game behind "you": "shoot you an e-mail", "beat you at chess"."""
SPARED_BEHIND = compile_regex(
    r"(?i)^(?: (?:in |on )(?:film|a tripod|raw)|,? because\b|,? (?:since|as) you\b|[^.!?]{0,60}\b(?:command|respawn|level|minecraft|avatar|is (?:wrong|untrue|a lie|never|not true)|are not true|bullying|helpline|call 988|reset|set it straight|anaesthe|anesthe)\b)",
    "what spares a wording before it",
)
"""A game, a reason or a denial behind the wording."""
# fmt: on


def _patterns(kind: str, wordings: Wordings) -> list[Pattern]:
    return [
        Pattern(f"{kind}:{number}", f"(?m:{regex})", tuple(keys.split("|")), ignore_case=True)
        for number, (keys, regex) in enumerate(wordings)
    ]


_ALL = (*_patterns("threat", THREATS), *_patterns("self_harm", SELF_HARM))
PATTERNS: Final = PatternSet(_ALL, engine="keywords")
"""Ids are `threat:N` and `self_harm:N`. Hyperscan would take 20 s of processor time to compile them at
every start, and only texts that `MAY_HOLD` a threat come here."""
MAY_HOLD: Final = compile_regex(
    "|".join(sorted({rf"\b{key}" for pattern in _ALL for key in pattern.keywords})),
    "words of threats",
    ignore_case=True,
)
"""Found wherever a pattern is: ordinary text is looked at once, with this."""
