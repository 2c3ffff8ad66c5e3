"""Units, currencies, number words, months and signal words; a small own table, see decision 17.

A unit is a dimension and a factor to that dimension's base: metres, kilograms, litres, seconds,
bytes, square metres, kilometres per hour. A currency's dimension is `money:` and its code.
"""

# Signs of several scripts are the data.

from __future__ import annotations

from typing import Final

from guardrail_service.inference.models.lexical import STOP as _STOP

MONTH_S: Final = 86_400 * 365.25 / 12


def listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def _units(rows: str) -> dict[tuple[str, ...], tuple[str, float]]:
    """Return units by their lower-case tokens; a row is `dimension factor name, name, ...`."""
    found = {}
    for row in rows.strip().splitlines():
        dimension, factor, names = row.split(None, 2)
        for name in names.split(","):
            found[tuple(name.split())] = (dimension, float(factor))
    return found


UNITS: Final = _units(f"""
length 0.001 mm, millimetre, millimetres, millimeter, millimeters, millimeter
length 0.01 cm, centimetre, centimetres, centimeter, centimeters, zentimeter
length 1 m, metre, metres, meter, meters, mètre, mètres, metro, metros, metri
length 1000 km, kilometre, kilometres, kilometer, kilometers, kilomètres, kilómetros, chilometri
length 0.0254 inch, inches
length 0.000001 micrometre, micrometres, micrometer, micrometers, µm, micron, microns
length 0.3048 ft, foot, feet
length 0.9144 yd, yard, yards
length 1609.344 mi, mile, miles, meilen
length 1852 nautical miles, nautical mile
mass 0.000000001 µg, mcg, microgram, micrograms
mass 0.000001 mg, milligram, milligrams, milligramm
mass 0.001 g, gram, grams, gramme, grammes, gramm
mass 1 kg, kgs, kilo, kilos, kilogram, kilograms, kilogramm, kilogrammes, kilogramos
mass 1000 t, tonne, tonnes, ton, tons, metric tons, tonnen
mass 0.45359237 lb, lbs
mass 0.028349523 oz, ounce, ounces
mass 6.35029318 stone
volume 0.001 ml, millilitre, millilitres, milliliter, milliliters
volume 0.01 cl, centilitre, centilitres
volume 0.005 teaspoon, teaspoons, tsp
volume 0.015 tablespoon, tablespoons, tbsp
volume 1 l, litre, litres, liter, liters, litros, litri
volume 3.785411784 gallon, gallons, gal, us gallon, us gallons
volume 4.54609 imperial, imperial gallon, imperial gallons, uk gallon, uk gallons
volume 0.473176473 pint, pints
volume 0.946352946 quart, quarts
volume 0.0295735 fl oz, fluid ounce, fluid ounces
volume 1000 m ³, cubic metres, cubic meters, cubic metre, kubikmeter
volume 1000 mètres cubes, metros cúbicos, metri cubi
volume 28.316846592 cubic foot, cubic feet, cu ft
volume 0.001 cm ³, cubic centimetres, cubic centimeters
length 0.001 毫 米, ミリメートル, ミリ, 밀리미터
length 0.01 厘 米, 公 分, センチメートル, センチ, 센티미터
length 1 米, 公 尺, メートル, 미터
length 1000 公 里, 千 米, キロメートル, 킬로미터
length 0.3048 英 尺
length 1609.344 英 里
length 0.0254 英 寸
mass 0.001 克, グラム, 그램
mass 1 公 斤, 千 克, キログラム, 킬로그램
mass 1000 吨, 噸, トン, 톤
mass 0.45359237 磅
volume 0.001 毫 升, ミリリットル, 밀리리터
volume 1 升, リットル, 리터
area 1 平 方 米, ㎡, 平 米, 平方メートル, 제곱미터
celsius 1 ° c, 摄 氏 度, degrees celsius, degree celsius, celsius, degrees centigrade, grad celsius
fahrenheit 1 ° f, degrees fahrenheit, degree fahrenheit, fahrenheit
kelvin 1 kelvin, kelvins
degree 1 °, degrees, degree
duration 0.001 ms, millisecond, milliseconds
duration 1 s, sec, secs, second, seconds, sekunden, secondes, segundos, secondi
duration 60 min, mins, minute, minutes, minuten, minuto, minutos, minuti
duration 60 minut, minuty, 分, 分 钟, 分 鐘, 분
duration 3600 h, hr, hrs, hour, hours, stunde, stunden, heure, heures, hora, horas, ora, ore
duration 3600 uur, uren, godzina, godziny, godzin, 小 时, 小 時, 時 間, 시간
duration 86400 day, days, tag, tage, tagen, jour, jours, día, días, giorni, giorno, dias, dni
duration 86400 dia, dag, dagen, dzień, 天, 日 間, 일
duration 86400 calendar days, calendar day, night, nights
duration 86400 opening days, opening day, school days, school day, full days, whole days
workdays 1 business days, working days, business day, working day, weekdays, werktage, werktagen
workdays 1 arbeitstage, arbeitstagen, jours ouvrables, jours ouvrés, días hábiles, días laborables
workdays 1 giorni lavorativi, dias úteis, werkdagen, dni roboczych, dni robocze
duration 604800 week, weeks, wk, wks, woche, wochen, semaine, semaines, semana, semanas, settimane
duration 604800 settimana, weken, tydzień, tygodnie, tygodni, 周, 週 間, 주
duration 1209600 fortnight, fortnights
duration {MONTH_S} month, months, mths, monat, monate, monaten, mois, mes, meses, mesi
duration {MONTH_S * 12} year, years, yr, yrs, jahr, jahre, jahren, an, ans, année, années, año, años
duration {MONTH_S * 12} y / o, yo
duration {MONTH_S} mese, meses, mês, maand, maanden, miesiąc, miesiące, miesięcy
duration {MONTH_S} 个 月, 個 月, か 月, 개월
duration {MONTH_S * 12} anni, anno, ano, anos, jaar, rok, lata, lat, 年 間, 년
duration {MONTH_S * 120} decade, decades
duration {MONTH_S * 1200} century, centuries
data 1 byte, bytes
data 1000 kb, kilobyte, kilobytes, kib
data 1000000 mb, megabyte, megabytes, mib
data 1000000000 gb, gigabyte, gigabytes, gib
data 1000000000000 tb, terabyte, terabytes, tib
bitrate 0.001 kbps, kbit / s, kbit, kilobits
bitrate 1 mbps, mbit / s, mbit, megabits
bitrate 1000 gbps, gbit / s, gbit, gigabits
area 0.0001 cm ², cm 2, square centimetres
area 1 m ², m 2, sqm, sq m, square metre, square metres, square meter, square meters, quadratmeter
area 10000 ha, hectare, hectares, hektar, hectáreas, ettari, hectaren
area 1000000 km 2
area 1000000 km ², sq km, square kilometre, square kilometres, square kilometer, square kilometers
area 4046.8564224 acre, acres
area 0.09290304 sq ft, square foot, square feet, sqft
area 2589988.110336 sq mi, square mile, square miles
speed 1 km / h, kmh, kph, kilometres per hour, kilometers per hour, km per hour, stundenkilometer
speed 1 kilometres an hour, kilometers an hour
speed 1.609344 mph, miles per hour, miles an hour
speed 3.6 m / s, metres per second, meters per second
speed 1.852 knot, knots, kn
power 1 w, watt, watts
power 1000 kw, kilowatt, kilowatts
power 1000000 mw, megawatt, megawatts
energy 1 kwh, kilowatt hours, kilowattstunde, kilowattstunden
heat 1 kj, kilojoule, kilojoules
heat 4.184 kcal, kilocalories, calories
heat 1000 mj, megajoule, megajoules
pressure 1 bar, bars
pressure 0.0689476 psi
energy 1000 mwh, megawatt hours
energy 1000000 gwh, gigawatt hours
voltage 1 v, volt, volts
current 1 a, amp, amps, ampere
current 0.001 ma, milliamps, mah
frequency 1 hz, hertz
frequency 1000 khz, kilohertz
frequency 1000000 mhz, megahertz
frequency 1000000000 ghz, gigahertz
percent 1 %, percent, per cent, pct, prozent, pour cent, por ciento, por cento, per cento, procent
percent 1 percentage points, percentage point
percent 0.1 ‰
money:EUR 1 €, eur, euro, euros
money:USD 1 $, usd, us $, us dollar, us dollars, u.s. dollars, dollar, dollars
money:GBP 1 £, gbp, pound sterling, pounds sterling, quid
pound 1 pound, pounds
money:CHF 1 chf, fr, franken, swiss francs
money:JPY 1 ¥, jpy, yen, 円
money:CNY 1 cny, rmb, yuan, 元
money:INR 1 ₹, inr, rupee, rupees
money:CAD 1 cad, c $
money:AUD 1 aud, a $
money:kr 1 kr, kronor, kroner, krone, krona
money:kr 0.01 øre, öre
money:SEK 1 sek, swedish kronor, swedish krona
money:NOK 1 nok
money:DKK 1 dkk
money:PLN 1 pln, zł, zloty, zlotys
money:KRW 1 ₩, krw, won, 원
money:RUB 1 ₽, rub, roubles, rubles
money:TRY 1 try
money:BRL 1 brl, r $, reais
money:CZK 1 czk, kč, koruna, korun
money:HUF 1 huf, forint, forints
money:MXN 1 mxn
money:ZAR 1 zar, rand
money:SGD 1 sgd, s $
money:HKD 1 hkd, hk $
money:NZD 1 nzd, nz $
money:THB 1 thb, baht, ฿
money:ILS 1 ils, ₪, shekel, shekels
money:AED 1 aed, dirham, dirhams
money:cent 1 cent, cents, ct, cts
times 1 times
money:GBP 0.01 pence, p
""")
LONGEST_UNIT: Final = max(map(len, UNITS))
UNIT_STARTS: Final = frozenset(name[0] for name in UNITS)
ONLY_ATTACHED: Final = frozenset(
    ("m", "g", "t", "l", "s", "h", "w", "v", "a", "an", "ore", "ora", "try", "fr", "kn", "won", "p")
)
"""Short units that are words or letters elsewhere: only right behind digits or one blank, and the
words among them never behind a number word."""
NEVER_AFTER_BLANK: Final = frozenset(("a", "an", "v", "try", "ore", "s"))
BEFORE_NUMBER: Final = listed(
    "€ $ £ ¥ ₹ ₽ ₩ eur usd gbp chf jpy cny rmb inr cad aud sek nok dkk pln krw rub brl zł kr"
    " czk kč huf mxn zar sgd hkd nzd thb ฿ ils ₪ aed"
)
SLACK: Final = {"duration": 0.035, "data": 0.08}
"""Months are no whole number of days, and a gigabyte has two meanings."""
SCALES: Final = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "millions": 1e6, "billions": 1e9, "thousands": 1e3, "mn": 1e6, "mln": 1e6, "mio": 1e6,
    "bn": 1e9, "tn": 1e12, "k": 1e3, "dozen": 12.0, "dozens": 12.0, "lakh": 1e5, "crore": 1e7,
    "tausend": 1e3, "millionen": 1e6, "milliarden": 1e9, "mrd": 1e9, "mille": 1e3,
    "millones": 1e6, "milioni": 1e6, "miliardi": 1e9, "milliards": 1e9, "mil": 1e3,
    "만": 1e4, "천": 1e3, "억": 1e8,
    "milhões": 1e6, "miljoen": 1e6, "万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8, "千": 1e3,
}  # fmt: skip
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: Final = {word: n for n, word in enumerate(_ONES.split())} | {
    word: 20 + 10 * n for n, word in enumerate(_TENS.split())
}
TENS: Final = frozenset(_TENS.split())
_NTH = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS: Final = {word: n for n, word in enumerate(_NTH.split(), 1)}
ORDINAL_ENDS: Final = frozenset(("st", "nd", "rd", "th"))
FRACTIONS: Final = {"half": 50.0, "halves": 50.0, "quarter": 25.0, "quarters": 25.0,
                    "third": 100 / 3, "thirds": 100 / 3, "fifth": 20.0, "fifths": 20.0}  # fmt: skip
_MONTHS = (
    "january jan januar janvier enero gennaio janeiro januari stycznia styczniu styczeń",
    "february feb februar février febrero febbraio fevereiro februari lutego",
    "march mar märz mars marzo março maart marca",
    "april apr avril abril aprile kwietnia",
    "may mai mayo maggio maio mei maja",
    "june jun juni juin junio giugno junho czerwca",
    "july jul juli juillet julio luglio julho lipca",
    "august aug août agosto augustus sierpnia",
    "september sep sept septembre septiembre settembre setembro września",
    "october oct oktober octobre octubre ottobre outubro października",
    "november nov novembre noviembre novembro listopada",
    "december dec dezember décembre diciembre dicembre dezembro grudnia",
)
MONTHS: Final = {name: n for n, names in enumerate(_MONTHS, 1) for name in names.split()}
LONE_MONTHS: Final = listed(
    "January February April June July August September October November December"
)
"""Months that may stand without a number; "May" and "March" are words."""
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_SHORT_DAYS = "Mon Tue Wed Thu Fri Sat Sun"
WEEKDAYS: Final = {day: n for n, day in enumerate(_DAYS.split())} | {
    f"{day}s": n for n, day in enumerate(_DAYS.split())
}
SHORT_WEEKDAYS: Final = {day: n for n, day in enumerate(_SHORT_DAYS.split())}
IN_DATES: Final = frozenset(
    ("of", "de", "del", "the", ",", ".", "-", "/", "\u00b0", "\u00ba", "er")
)

BOUNDS: Final[tuple[tuple[tuple[str, ...], str], ...]] = tuple(
    (tuple(words.split()), bound)
    for bound, phrases in {
        "least": "at least, a minimum of, minimum, no less than, no fewer than, not less than,"
        " no shorter than, not shorter than, none shorter than, none less than, none fewer than,"
        " starting at, ≥, mindestens, au moins, al menos, almeno, or more",
        "most": "at most, a maximum of, maximum, no more than, not more than, up to, as many as,"
        " not older than, no older than, not longer than, no longer than, not later than,"
        " no later than,"
        " as much as, within, ≤, höchstens, maximal, bis zu, au plus, como máximo",
        "over": "more than, over, above, in excess of, exceed, exceeding, exceeds, greater than,"
        " higher than, older than, longer than, upwards of, >, mehr als, über, plus de, más de",
        "under": "less than, fewer than, under, below, lower than, younger than, shorter than, <,"
        " weniger als, unter, moins de, menos de",
        "nearly": "nearly, almost, just under, close to, approaching, fast, beinahe, presque, casi",
        "before": "before, prior to, earlier than",
        "after": "after, later than",
        "about": "about, around, approximately, approx, roughly, some, circa, ca, c, estimated,"
        " an estimated, ~, ≈, rund, etwa, ungefähr, environ, aproximadamente, quasi",
    }.items()
    for words in phrases.replace("\n", " ").split(",")
)
BOUND_ENDS: Final = {
    end: tuple(sorted(((w, b) for w, b in BOUNDS if w[-1] == end), key=lambda row: -len(row[0])))
    for end in {words[-1] for words, _ in BOUNDS}
}
HEAVY: Final = listed("weigh weight heavy heavi heavier lift load baggage luggage bag kg lb")
"""Stems beside which pounds are a weight and no money."""
PER: Final = listed("per a an each every / pro je par por al all'")
"""Words between an amount and the unit that it is for: "5 euros a month"."""
ADVERBS: Final = {"hourly": 3600.0, "daily": 86_400.0, "weekly": 604_800.0, "monthly": MONTH_S,
                  "yearly": MONTH_S * 12, "annually": MONTH_S * 12}  # fmt: skip
FRACTION_SIGNS: Final = {"\u00bc": 0.25, "\u00bd": 0.5, "\u00be": 0.75}
LOOSE: Final = frozenset(("about", "nearly"))

NEGATORS: Final = listed("not no never neither nor cannot nobody nowhere")
CONTRACTED: Final = listed(
    "don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't shouldn't wouldn't"
    " hasn't haven't hadn't mustn't needn't ain't n't"
)
DENYING: Final = NEGATORS | CONTRACTED
HEDGED: Final = listed(
    "if unless whether except although though but however only hardly barely scarcely rarely"
    " seldom instead rather otherwise than either just necessarily merely longer when yet"
    " might unlikely likely probably possibly abolished"
    " none nothing without free exclude excluding excluded"
    " deny denied denies fail failed fails lack lacks false myth mistake misleading unsuitable"
    " exception exceptions apart refuse refuses refusing prevent prevents prevented avoid avoids"
    " avoided stop stops stopped cease ceased abandoned withdrew withdrawn neither excuse"
)
"""Words with which a "not" is no plain denial of the rest."""
PLACED: Final = listed(
    "after before until till within during outside beyond over under since about"
)
"""Words that limit a statement to a time or place."""
OPPOSITES: Final = {
    "forbidden": "allowed", "prohibited": "allowed", "banned": "allowed", "disallowed": "allowed",
    "permitted": "allowed", "excluded": "included", "unavailable": "available",
    "impossible": "possible", "optional": "required", "mandatory": "required",
    "compulsory": "required", "closed": "open", "disabled": "enabled", "invalid": "valid",
    "unsafe": "safe", "unable": "able", "unlimited": "limited", "ineligible": "eligible",
    "incorrect": "correct", "untrue": "true", "illegal": "legal", "failed": "succeeded",
    "failure": "success", "decreased": "rise", "decreases": "rise", "fell": "rise", "falls": "rise",
    "loses": "wins", "lost": "won", "rejected": "accepted",
    "denied": "accepted", "approved": "accepted", "agreed": "accepted", "granted": "accepted",
    "refused": "accepted", "newer": "older", "rises": "rise", "rose": "rise", "risen": "rise",
    "increased": "rise", "increases": "rise", "fall": "rise", "fallen": "rise", "drop": "rise",
    "drops": "rise", "dropped": "rise", "declined": "rise", "larger": "smaller", "higher": "lower",
    "excludes": "includes", "banned ": "allowed", "unpaid": "paid",
    "nonrefundable": "refundable",
}  # fmt: skip
SAME_SIDE: Final = listed(
    "permitted mandatory compulsory approved agreed granted rises rose risen increased increases"
)
"""Keys of `OPPOSITES` that mean the same as their value, and not its opposite."""
AMOUNTS: Final = {
    "all": 4, "every": 4, "each": 4, "everyone": 4, "everybody": 4, "always": 4, "most": 3,
    "usually": 3, "many": 2, "often": 2, "several": 1, "some": 1, "sometimes": 1, "few": 0.5,
    "rarely": 0.5, "seldom": 0.5, "no": 0, "none": 0, "never": 0, "nobody": 0,
}  # fmt: skip
EARLIER: Final = frozenset(("before", "precedes", "preceded", "precede", "until", "till"))
LATER: Final = frozenset(("after", "follows", "followed", "following", "since", "once"))
FIRST: Final = frozenset(("first", "firstly"))
THEN: Final = listed("then next finally afterwards subsequently thereafter lastly later")
SEQUENCE_STEMS: Final = listed(
    "first then next final finally afterward subsequent thereafter lastly last later following"
    " followed follow com come came step second third whil"
)
TITLES: Final = listed(
    "mr mrs ms miss dr prof professor cllr councillor sir lord lady king queen princ prince princes"
    " duk duke duchess general captain colonel president judg minister coach refere frau herr"
    " monsieur madam señor signor pan pani"
)
"""Stems before names that are no part of them."""
OFFICES: Final = listed("captain coach referee chair chairman chairwoman mayor treasurer")
"""Offices that stand before one name only."""
SAME_DEED: Final = {
    "acquir": "buy",
    "bought": "buy",
    "purchas": "buy",
    "took": "take",
    "taken": "take",
    "defeat": "beat",
    "beaten": "beat",
    "led": "lead",
    "head": "lead",
    "taught": "teach",
    "built": "build",
    "wrote": "write",
    "written": "write",
    "sold": "sell",
    "gave": "give",
    "given": "give",
    "paid": "pay",
    "sent": "send",
    "won": "win",
    "founded": "found",
    "suppl": "supply",
    "beat": "beat",
    "succeeded": "succeed",
    "employ": "hir",
}
"""Stems of verbs that are forms or synonyms of another one."""
CONVERSE: Final = {"lost": "beat", "lose": "beat", "los": "beat"}
"""Verbs whose "A verb to B" is "B verb A" of another verb."""
SIGNALS: Final = {
    "denial": DENYING | frozenset(OPPOSITES),
    "amount": frozenset(AMOUNTS),
    "order": EARLIER | LATER | THEN | FIRST,
    "condition": listed(
        "even whether regardless matter irrespective including included without either anyone"
        " anybody everyone everybody any all must required obliged mandatory compulsory obligatory"
        " have has"
    ),
}
"""Words without which a sentence says nothing of a kind."""
MUTUAL: Final = listed(
    "met meet meets married marry marries merged merge merges and or vs versus against with"
    " borders border bordered resembles equals near opposite between talked spoke played plays"
    " corresponds correspond corresponding equal entspr faces faced drew tied like joined called"
    " were are is was as"
)
"""Verbs for which it is all the same who comes first."""
ARITHMETIC: Final = listed(
    "total totals totaling totalling altogether all sum combined together overall both difference"
    " increase increased increases rise rose grew growth gain gained decrease decreased decreases"
    " decline declined drop dropped fell fall reduction reduced change changed more fewer less gap"
    " higher lower larger smaller longer shorter old older younger each average mean times double"
    " twice triple half share proportion percentage percent ratio left remaining remain later"
    " earlier ago additional extra plus minus spend save saves saving aged lasted spanning span"
    " equals equal so therefore thus hence means makes come comes amounts sums margin"
    " add adds adding added another works bring brings bringing spare gaps interval intervals"
)
"""Words with which a claim may have computed its number."""
MENTIONED: Final = listed(
    "all both each mean means share proportion percentage percent so therefore thus hence"
    " add adds adding added another works bring brings bringing"
)
"""Those of them that stand in many a claim that computes nothing: no long calculation is theirs."""
ANNOUNCED: Final = listed(
    "total totals totaling totalling altogether sum sums combined together overall difference"
    " margin gap gaps interval intervals"
    " increase increased increases rise rose grew growth gain gained decrease decreased decreases"
    " decline declined drop dropped fell fall reduction reduced change changed average mean plus"
    " minus save saves saving equals equal amounts comes aged old lasted spanning span"
)
"""Those with which it surely has: then all of its numbers may be the passages'."""
RELATIVE: Final = listed(
    "later earlier more less fewer longer shorter higher lower ahead behind older younger plus"
    " surcharge cheaper off discount supplement half double twice compared save saves saving"
    " rebate reduction reduced"
)
"""Words with which a passage tells one number by another."""
TELLING: Final = RELATIVE | listed("adds further extended another extra additional rest remaining")
"""Those with which it says what to add or to take away."""
NEIGHBOURING: Final = {
    unit: {
        1: frozenset(((unit, "after"), (unit, "later"), ("following", unit), ("next", unit))),
        -1: frozenset(((unit, "before"), (unit, "earlier"), ("previous", unit))),
    }
    for unit in ("year", "week", "day")
}
"""Pairs of words with which a passage tells of the year, or the day, before or after another."""
FACTORS: Final = {
    2.0: ("doubl", "verdoppel", "duplic", "doblar", "raddopp", "dobrar", "dobre", "verdubbel",
          "podwo"),
    3.0: ("tripl", "trebl", "verdreifach", "verdriedubbel", "potro"),
    4.0: ("quadrupl", "vervierfach"),
    0.5: ("halve", "halving", "halbier", "dimezz"),
}  # fmt: skip
"""Beginnings of verbs with which an answer multiplies all amounts."""
MULTIPLIED: Final = (
    "recipe", "everything", "all", "amount", "quantit", "ingredient", "receit", "receta", "ricett",
    "recett", "rezept", "recept", "przepis", "menge", "cantidad", "dosi", "hoeveelhe", "alles",
    "tutto", "tudo", "todo", "tout",
)  # fmt: skip
"""Beginnings of what they multiply: no "double room"."""
HALVED: Final = listed("half halve halves halved double doubles doubled twice")
"""Words of half and twice that tell of a calculation also in the sentence before."""
CHANGES: Final = listed(
    "increase increased increases rise rises rose grew growth gain gained decrease decreased"
    " decreases decline declined drop dropped fell fall reduction reduced change changed more fewer"
    " less higher lower larger smaller longer shorter older younger up down difference margin"
    " total"
)
"""Words with which a percentage may tell how far one number lies from another; "total" also stands
for those of other languages."""
MEANS: Final = listed("average averages averaged mean midpoint total")
"""Words that tell of a mean; "total" as in `CHANGES`."""
TWOFOLD: Final = HALVED | listed("both two pair couple return each total average 2")
"""Words with which a number may be twice or half of another; "total" as in `CHANGES`."""
STOP: Final = _STOP | listed("get gets got also there one ones per etc via s t re ll ve d m a")
