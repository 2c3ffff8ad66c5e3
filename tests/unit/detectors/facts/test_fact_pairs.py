"""Written minimal pairs: a passage, a claim that follows from it, and one with a fact changed."""

# Signs of several scripts are the data.
# ruff: noqa: RUF001

from __future__ import annotations

import pytest

from guardrail_service.detectors.facts.detector import verdicts
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

CUT = 0.5
BAR = "Oat bar, 45 g. Nutrition per 100 g: energy 1,640 kJ, fat 12 g, protein 9 g, salt 0.2 g."
SHARES = "Of 1,240 sailings, 1,178 ran, and 62 were cancelled, 48 of them because of weather."
TABLE = (
    "Costs (in thousands): | 2019 | 2018\nResearch | $8,551 | $13,448\nTotal | $23,792 | $31,937"
)
PAIRS = {
    "total before its parts": (
        "Adults pay £410 a year, juniors £185. A joining fee of £25 is charged once per household.",
        "Two adults and a junior pay £1,030: 2 × £410 = £820, £185 and the joining fee of £25.",
        "Two adults and a junior pay £1,090: 2 × £410 = £820, £185 and the joining fee of £25.",
    ),
    "a count at a rate": (
        "Team allows 300 requests per minute and 150,000 requests per day.",
        "At 300 requests per minute you use up the 150,000 daily requests in 500 minutes.",
        "At 300 requests per minute you use up the 150,000 daily requests in 700 minutes.",
    ),
    "cents and euros": (
        "The heat pump used about 3,800 kWh. WarmPlus costs 21.5 cents per kWh, Home 30.5 cents.",
        "For 3,800 kWh, 9 cents less per kWh come to 342 euros.",
        "For 3,800 kWh, 9 cents less per kWh come to 382 euros.",
    ),
    "credit taken off": (
        "You drew 2,400 kWh and fed in 3,100 kWh. Electricity costs 31.5 cents per kWh; the charge"
        " is €11.90 a month. We pay 8.2 cents per kWh that is fed in.",
        "- Grid: 2,400 kWh × €0.315 = €756.00\n- Charge: 12 × €11.90 = €142.80\n"
        "- Credit: 3,100 kWh × €0.082 = €254.20\n\nNet: €644.60.",
        "- Grid: 2,400 kWh × €0.315 = €756.00\n- Charge: 12 × €11.90 = €142.80\n"
        "- Credit: 3,100 kWh × €0.082 = €254.20\n\nNet: €684.60.",
    ),
    "computed column": (
        "Compact: 5 concerts for €230. Grand: 10 concerts for €420.",
        "| Series | Price | Concerts | Per concert |\n|---|---|---|---|\n"
        "| Compact | €230 | 5 | €46 |\n| Grand | €420 | 10 | €42 |",
        "| Series | Price | Concerts | Per concert |\n|---|---|---|---|\n"
        "| Compact | €230 | 5 | €64 |\n| Grand | €420 | 10 | €42 |",
    ),
    "sides in one unit": (
        "Hand baggage: up to 8 kg, no larger than 55 x 40 x 20 cm.",
        "The bag must fit within about 21.5 x 15.5 x 8 inches.",
        "The bag must fit within about 24.5 x 15.5 x 8 inches.",
    ),
    "days of some weeks": (
        "The library was open on 5 days a week in 51 weeks of the year and lent 61,880 items.",
        "The library was open on 255 days (5 days in each of 51 weeks).",
        "The library was open on 265 days (5 days in each of 51 weeks).",
    ),
    "the year after": (
        "The fund was set up in 1901 by his sister and gave its first grant the year after.",
        "The fund of his sister gave its first grant in 1902.",
        "The fund of his sister gave its first grant in 1904.",
    ),
    "a column by a factor": (
        "City bike 14 euros a day, trekking bike 19 euros, e-bike 32 euros. The weekly price is"
        " five times the daily price. Deposit: 50 euros for city bikes, 150 for e-bikes.",
        "| Bike | Per day | Per week | Deposit |\n|---|---|---|---|\n| City | €14 | €70 | €50 |\n"
        "| E-bike | €32 | €160 | €150 |",
        "| Bike | Per day | Per week | Deposit |\n|---|---|---|---|\n| City | €14 | €70 | €50 |\n"
        "| E-bike | €32 | €180 | €150 |",
    ),
    "the month behind a day": (
        "Places can be transferred until 31 March. After that date no transfers are possible.",
        "From April onward no transfer is possible.",
        "From June onward no transfer is possible.",
    ),
    "age groups": (
        "It is free for everyone up to 18; adults pay 15 euros a year.",
        "Adults pay €15 a year, under-18s nothing.",
        "Adults pay €25 a year, under-18s nothing.",
    ),
    "a price list per kilogram": (
        "Tessel price list per kilogram: Oldmark hard cheese 24 euros, Pinnow 21 euros.",
        "- Oldmark, 600 g: €14.40\n- Pinnow, 400 g: €8.40",
        "- Oldmark, 600 g: €14.40\n- Pinnow, 400 g: €9.40",
    ),
    "readings at start and end": (
        "Meter readings in cubic metres, start and end of year: flat 1: 210 and 262; flat 2: 88"
        " and 119. Water costs 4.50 euros per cubic metre.",
        "Flat 1: 52 m³. Flat 2: 31 m³.",
        "Flat 1: 57 m³. Flat 2: 31 m³.",
    ),
    "energy and power": (
        "The Helio Wall battery stores 9.6 kWh. With panels of 6 kW it fills in about two hours.",
        "At a steady 0.4 kW, a full battery lasts 24 hours.",
        "At a steady 0.4 kW, a full battery lasts 29 hours.",
    ),
    "gaps between years": (
        "Eruptions of Mount Harra are recorded for 1783, 1829, 1868, 1921 and 1974.",
        "The gaps between eruptions ran from 39 to 53 years.",
        "The gaps between eruptions ran from 33 to 59 years.",
    ),
    "hours without a sign": (
        "A spot costs 10 euros for half a day (10 to 15 or 16 to 21). Music until 20:00.",
        "Take the daytime slot, 10 am to 3 pm, or the evening one, 4 to 9 pm.",
        "Take the daytime slot, 11 am to 3 pm, or the evening one, 4 to 9 pm.",
    ),
    "room to spare": (
        "The bridge has a clearance of 13 ft 6 in. The detour adds eleven miles.",
        "The clearance is about 4.11 m, so a 4.0 m lorry passes with some 11 cm to spare.",
        "The clearance is about 4.11 m, so a 4.0 m lorry passes with some 19 cm to spare.",
    ),
    "lines begin with what is added": (
        "The Ister has 418 km, of which boats use 260. The Vale has 295 km. Ember: 226 km.",
        "1. Ister, 418 km (260 km navigable)\n2. Vale, 295 km\n3. Ember, 226 km\n\n"
        "Together they come to 939 km.",
        "1. Ister, 418 km (260 km navigable)\n2. Vale, 295 km\n3. Ember, 226 km\n\n"
        "Together they come to 979 km.",
    ),
    "one every so many seconds": (
        "Free keys may send 20 requests per minute and 1,000 per day.",
        "A free key gets 20 requests a minute, that is one every 3 seconds.",
        "A free key gets 20 requests a minute, that is one every 7 seconds.",
    ),
    "milliseconds, at least": (
        "editor.autosave accepts off or a number of milliseconds, at least 500.",
        '{\n  "editor.autosave": 5000\n}',
        '{\n  "editor.autosave": 200\n}',
    ),
    "an amount of the question": (
        "Remaining debt today: 196,500 euros. You may repay 5 percent a year free of charge.",
        "If you repay 30,000, your debt of €196,500 would drop to €166,500.",
        "If you repay 30,000, your debt of €196,500 would drop to €176,500.",
    ),
    "military hours": (
        "The quarter-finals will be drawn on 16 March 2018, 13:00 CET.",
        "The 2017-18 quarter-finals were drawn on 16 March 2018 at 1300 hours.",
        "The 2017-18 quarter-finals were drawn on 16 March 2018 at 1400 hours.",
    ),
    "a season of two years": (
        "The draw was held on 16 March 2018 in Nyon.",
        "The draw of the 2017-18 season was held in Nyon.",
        "The draw of the 2019-20 season was held in Nyon on 16 March 2020.",
    ),
    "spoken decimals": (
        "You take atenolol twelve point five mg per day, and point six mg of colchicine.",
        "She takes atenolol 12.5 mg per day and 0.6 mg of colchicine.",
        "She takes atenolol 12.8 mg per day and 0.6 mg of colchicine.",
    ),
    "the share of an or": (
        "The makeup of the city was 50.2% White, 8.4% Black or African American, 1.6% Native"
        " American, 11.2% Asian, 0.1% Pacific Islander, 23.4% from other races.",
        "The percentage of Black or African-Americans living in the city was 8.4%.",
        "The percentage of Native Americans living in the city was 8.4%.",
    ),
    "not only so many": (
        "This department has more than 5,500 employees.",
        "There are not only 1000 employees in this department.",
        "There are only 1000 employees in this department.",
    ),
    "the next day": (
        "Post by heronbill, 3 March: sync drops notes. Answer by Anneke, 11 March: it is in 6.3.1."
        " heronbill wrote the next day that it worked.",
        "heronbill confirmed on 12 March that it worked.",
        "heronbill confirmed on 14 March that it worked.",
    ),
    "a mean between two": (
        "Course: 18 videos with a total running time of 315 minutes.",
        "The 18 videos are 17 to 18 minutes long on average.",
        "The 18 videos are 14 to 15 minutes long on average.",
    ),
    "oven marks": (
        "Heat the oven to 180 °C.",
        "Heat the oven to about 350 °F.",
        "Heat the oven to about 375 °F.",
    ),
    "a value for example": (
        "max_body limits the size of a request body. Default 8m. Suffixes: k, m, g.",
        "The default is 8 MB. To allow e.g. 50 MB:\n\nroute {\n  max_body 50m;\n}",
        "The default is 9 MB. To allow more:\n\nroute {\n  max_body 50m;\n}",
    ),
    "example within limits": (
        '"fontSize" is a number from 10 to 32, default 15. "theme" takes light or dark.',
        'Larger text:\n\n{\n  "theme": "dark",\n  "fontSize": 18\n}',
        'Larger text:\n\n{\n  "theme": "dark",\n  "fontSize": 40\n}',
    ),
    "a title is no unit": (
        "Minutes, hall committee, item 4: The panels on the hall roof were put into service on"
        " 1 June 2021. The roof is due for renewal in 2035.",
        "They pay off in mid-2031, which is four years before the roof renewal in 2035.",
        "They pay off in mid-2031, before the roof renewal in 2045.",
    ),
    "limit that nobody computes": (
        "Sofas can be registered within 60 days of delivery. Goods are sent back within 30 days.",
        "You need to register it online within 60 days of delivery.",
        "You need to register it online within 90 days of delivery.",
    ),
    "below another limit": (
        "For claims below £1,500, photographs are enough.",
        "Claims below £1,500 are settled by photographs.",
        "Claims below £2,500 are settled by photographs.",
    ),
    "an amount in another currency": (
        "The price of Brisa Winches was EUR 4.2 million. Brisa contributed SEK 24.3 million.",
        "Fjell paid EUR 4.2 million for Brisa Winches.",
        "Fjell paid SEK 4.2 million for Brisa Winches.",
    ),
    "names and values in turns": (
        "At Gull Point 64 % of the shoots were alive after two years, at Sallow Reef 29 %.",
        "Of the shoots 64 % were alive at Gull Point, compared with just 29 % at Sallow Reef.",
        "Of the shoots 64 % were alive at Sallow Reef, compared with just 29 % at Gull Point.",
    ),
    "spoons": (
        "You need 300 g flour and 2 teaspoons baking powder.",
        "Take 300 g of flour and 2 teaspoons of baking powder.",
        "Take 300 g of flour and 2 tablespoons of baking powder.",
    ),
    "spoken time": (
        "Transfers are executed the same day if ordered by 14:00.",
        "Money leaves the same day if you order no later than two in the afternoon.",
        "Money leaves the same day if you order no later than three in the afternoon.",
    ),
    "quarter to": (
        "The drill is held on Sundays at 17:45.",
        "The drill starts at a quarter to six.",
        "The drill starts at a quarter past five.",
    ),
    "within a fortnight": (
        "Objections can be raised within a fortnight of receiving it.",
        "You have two weeks to object.",
        "You have six weeks to object.",
    ),
    "rounded up to a half": (
        "Full-time staff have 27 days of leave. Others get their share, rounded up to the next"
        " half day.",
        "Your share of 60 % comes to 16.2 days, so you get 16.5 days.",
        "Your share of 60 % comes to 16.2 days, so you get 18.5 days.",
    ),
    "minus degrees": (
        "Temperatures lie between minus 140 and plus 20 degrees Celsius.",
        "Temperatures range from −220 °F (−140 °C) to 68 °F.",
        "Temperatures range from −120 °F to 68 °F.",
    ),
    "feet and inches": (
        "The barrel is 1.1 m tall.",
        "The barrel is 3 ft 7 in tall.",
        "The barrel is 5 ft 7 in tall.",
    ),
    "gallons": (
        "The barrel holds 310 litres.",
        "It holds about 82 US gallons, or 68 imperial gallons.",
        "It holds about 95 US gallons.",
    ),
    "rate per area": (
        "Seed costs 92 euros per hectare on average.",
        "Seed costs roughly 37 euros per acre.",
        "Seed costs roughly 57 euros per acre.",
    ),
    "rate per time": (
        "The tongue of the glacier moved 0.5 metres per day after rain.",
        "After rain the tongue of the glacier moved 0.5 metres a day.",
        "After rain the tongue of the glacier moved 0.5 metres an hour.",
    ),
    "fraction sign": (
        "The time limit is 165 minutes.",
        "The limit is 2¾ hours.",
        "The limit is 3¾ hours.",
    ),
    "start and duration": (
        "The race starts at 10:30. The limit is 165 minutes.",
        "With a 10:30 start and 2¾ hours, it closes at 13:15.",
        "With a 10:30 start and 2¾ hours, it closes at 13:45.",
    ),
    "days of a range": (
        "The fair takes place from Tuesday 16 to Thursday 18 September 2025.",
        "The fair opens on 16 September.",
        "The fair opens on 26 September 2025.",
    ),
    "portion": (BAR, "One bar of 45 g has 5.4 g of fat.", "One bar of 45 g has 7.4 g of fat."),
    "in thousands": (TABLE, "Research cost $8.6 million in 2019.", "Research cost $6.8 million."),
    "share": (SHARES, "48 (3.9%) sailings fell to weather.", "86 sailings fell to weather."),
    "a year at a monthly rent": (
        "Rent is 1,150 euros a month for 36 months.",
        "13,800 euros in the first year.",
        "17,800 euros in the first year.",
    ),
    "portion per head": (
        "Recipe for 4: 300 g flour, 150 g butter and 2 eggs.",
        "That is 75 g of flour per person.",
        "That is 95 g of flour per person.",
    ),
    "half fare": (
        "A berth costs 1,290 CZK. Dogs travel at half fare.",
        "A dog costs 645 CZK.",
        "A dog costs 545 CZK.",
    ),
    "end of a lease": (
        "The lease starts on 1 September 2023 and runs for 36 months.",
        "It ends on 31 August 2026.",
        "It ends on 31 August 2025.",
    ),
    "opening hours without colons": (
        "Office hours: Monday to Thursday 8.30 to 12.00 and 13.00 to 16.30.",
        "The office is open from 8:30 am to noon and from 1 to 4:30 pm.",
        "The office is open from 8:30 am to noon and from 1 to 5:30 pm.",
    ),
    "spoken year": (
        "Patient: I had a biopsy in nineteen eighty nine.",
        "She had a biopsy in 1989.",
        "She had a biopsy in 1998.",
    ),
    "quarter of an hour": (
        "Just watch the first quarter hour of it.",
        "Just watch the first 15 minutes of it.",
        "Just watch the first 25 minutes of it.",
    ),
    "a list of counts": (
        "The Greens won 34 seats, the Conservatives 22 and the Farmers' List 8.",
        "- Greens: 34 seats\n- Conservatives: 22 seats\n- Farmers' List: 8 seats",
        "- Greens: 34 seats\n- Conservatives: 22 seats\n- Farmers' List: 18 seats",
    ),
    "one word": (
        "Turnout at the election was 71.4 per cent.",
        "Turnout was 71.4 per cent.",
        "Turnout was 74.1 per cent.",
    ),
    "another time after": (
        "He promoted dependency theory after 1970 and systems theory after 1984; he died in 2005.",
        "He promoted dependency theory after 1970 and systems theory after 1984.",
        "He promoted dependency theory after 1970 and systems theory after 1989.",
    ),
    "rate without common words": (
        "The surface moves 34 metres per year, with 0.5 metres per day in heavy rain.",
        "At times it sped up to 0.5 metres a day.",
        "At times it sped up to 0.5 metres an hour.",
    ),
    "a wrong sum without a unit": (
        "Oak: chair 89.00 each, table 340.00. Delivery costs 35.00.",
        "Altogether you pay 124.00 for chair and delivery.",
        "Altogether you pay 163.00 for chair and delivery.",
    ),
    "German number words": (
        "Pro Abholung sind höchstens drei Kubikmeter zulässig; bitte getrennt bereitstellen.",
        "Erlaubt sind bis zu drei Kubikmeter je Abholung, getrennt bereitgestellt.",
        "Erlaubt sind bis zu fünf Kubikmeter je Abholung, getrennt bereitgestellt.",
    ),
    "German evening": (
        "Der Kurs umfasst 12 Abende zu je 90 Minuten und beginnt um 18.15 Uhr.",
        "Ein Abend des Kurses endet um 19:45 Uhr.",
        "Der Kurs beginnt um 19:15 Uhr.",
    ),
    "French days": (
        "Les travaux durent du 3 au 21 mars 2025.",
        "Les travaux durent du 3 mars au 21 mars 2025.",
        "Les travaux durent du 3 mars au 28 mars 2025.",
    ),
    "Spanish count": (
        "En cajeros de otras entidades, 1,80 € por operación; las tres primeras de cada mes son"
        " gratuitas con la Cuenta Joven.",
        "En los de otros bancos cuesta 1,80 €, aunque con la Cuenta Joven las tres primeras del mes"
        " salen gratis.",
        "En los de otros bancos cuesta 1,80 €, aunque con la Cuenta Joven las cinco primeras del"
        " mes salen gratis.",
    ),
    "Portuguese weekday": (
        "À quarta-feira a presença no escritório é obrigatória para todas as equipas.",
        "À quarta-feira todas as equipas têm de estar no escritório.",
        "À segunda-feira todas as equipas têm de estar no escritório.",
    ),
    "Japanese amount": (
        "指定席は1万3970円、東京を8時03分に出発し、10時17分に着きます。",
        "指定席は13,970円で、所要時間は2時間14分です。",
        "指定席は14,970円です。",
    ),
    "a denied number": (
        "The union has members in Canada.",
        "The union does not have 100 members in Canada.",
        "The union has a fee of 150 dollars in Canada.",
    ),
    "after which": (
        "India gained independence, after which preparing a constitution was started.",
        "Preparing a constitution was started after India gained independence.",
        "Preparing a constitution was started after 12 years.",
    ),
    "no object": (
        "The Ohio River is formed by the confluence of the Allegheny and Monongahela rivers.",
        "The Ohio River starts at the confluence of the Allegheny and Monongahela Rivers.",
        "The Ohio River starts 30 miles below the Allegheny.",
    ),
    "no fee": ("The account has no monthly fee.", "The fee is £0.", "The fee is £5."),
    "up to": (
        "Up to 30 kg are allowed.",
        "You may bring up to 30 kg.",
        "You may bring up to 35 kg.",
    ),
    "range end": (
        "Loans run from 12 to 84 months.",
        "Terms run between 12 and 84 months.",
        "Terms run between 12 and 48 months.",
    ),
    "twice": (
        "A book can be renewed twice.",
        "A book may be renewed two times.",
        "A book may be renewed three times.",
    ),
    "phone number": (
        "Call 0800 555 0142 on weekdays.",
        "The number is 0800 5550142.",
        "Call 0800 555 0142 on 7 weekdays for 25 euros.",
    ),
    "own share of a table": (
        "The Home 100 plan is sold for $39 a month, Home 500 is sold for $59 a month.",
        "| Plan | Price |\n|---|---|\n| Home 100 | $39 |\n| Home 500 | $59 |",
        "| Plan | Price |\n|---|---|\n| Home 100 | $59 |\n| Home 500 | $39 |",
    ),
    "another currency": (
        "After that time we will charge 10 GBP. Tipping with about 10% is common.",
        "Later a fee of 10 pounds applies.",
        "Later a fee of 10 EUR applies.",
    ),
    "working days": (
        "Tablets must be returned within 14 days. Refunds take 5 working days.",
        "For tablets you have 14 days.",
        "Tablets can be returned within 14 working days.",
    ),
    "count of the same things": (
        "An account holds six profiles. On the Family plan, four devices can stream at a time.",
        "With the Family plan four devices can watch at once.",
        "With the Family plan up to five devices can watch at once.",
    ),
    "exchanged counts": (
        "The retina has close to 4.5 million cone cells and 90 million rod cells.",
        "The retina has about 90 million rods and close to 4.5 million cones.",
        "The retina has about 90 million cones and close to 4.5 million rods.",
    ),
    "exchanged without a unit": (
        "Its lifespan is 22 years for males and 28 years for females.",
        "Males reach about 22 years and females about 28.",
        "Males reach about 28 years and females about 22.",
    ),
    "ordinal of the same things": (
        "The first dose is given at two months and the third at eleven months.",
        "The first dose is given at two months.",
        "The fourth dose is given at eleven months.",
    ),
    "Spanish": (
        "Una tarjeta nueva cuesta 12 euros y la cuenta 4,50 euros al mes.",
        "La tarjeta nueva cuesta 12 euros.",
        "La tarjeta nueva cuesta 21 euros.",
    ),
    "Polish date": (
        "Wnioski można składać do 15 stycznia w urzędzie.",
        "Wnioski można składać do 15 stycznia.",
        "Wnioski można składać do 25 stycznia.",
    ),
    "Korean weekday": (
        "요가 수업은 화요일 18시에 있습니다.",
        "요가 수업은 화요일에 있습니다.",
        "요가 수업은 목요일 18시에 있습니다.",
    ),
    "prefix non": (
        "It does not cover damage by flooding, or by repairs in workshops that are not certified.",
        "Damage by flooding is excluded, as is damage from repairs in non-certified workshops.",
        "It covers damage by 12 repairs.",
    ),
    "no exception": (
        "The race has been held every year since 1998, except in 2020.",
        "The race has been held every single year since 1998, except in 2020.",
        "The race has been held every single year since 1998 without exception.",
    ),
    "followed by": (
        "The prose books were followed by Horton.",
        "The prose books came before Horton.",
        "Horton came before the prose books.",
    ),
    "German words": (
        "Höchstens drei Kubikmeter sind zulässig, die Zahlung erfolgt innerhalb von zwei Wochen.",
        "Erlaubt sind bis zu drei Kubikmeter, gezahlt wird binnen 14 Tagen.",
        "Erlaubt sind bis zu fünf Kubikmeter, gezahlt wird binnen 24 Tagen.",
    ),
    "Chinese numerals": (
        "早餐供应时间为七点至十点，每位八十八元。",
        "早餐每位88元，七点到十点供应。",
        "早餐每位六十八元，七点到十点供应。",
    ),
    "product with a count of its own": (
        "A locker costs 0.40 euros a day. The hall is open for 14 days.",
        "A locker costs 0.40 euros a day. Twelve days come to 4.80 euros.",
        "A locker costs 0.40 euros a day. Twelve days come to 5.60 euros.",
    ),
    "numbers that stand apart": (
        "Adults pay 18.50 euros. Parking costs 13 euros a night. Children pay 9 euros.",
        "Adults pay 18.50 euros and children 9 euros. Together that makes 27.50 euros.",
        "Adults pay 18.50 euros and children 9 euros. Together that makes 44.50 euros.",
    ),
    "share of a sum": (
        "The cover is 40,000 euros, jewellery up to 15 percent of it. Cash is covered up to 900.",
        "With a cover of 40,000 euros, 15 percent of it is 6,000 euros.",
        "With a cover of 40,000 euros, 15 percent of it is 6,800 euros.",
    ),
    "what is left": (
        "Ida Berg scored seven goals, three of them penalties. Her team won 8 games.",
        "Berg scored seven goals, three of them penalties, which leaves four.",
        "Berg scored seven goals, three of them penalties, which leaves eight.",
    ),
    "time between two times": (
        "The ferry leaves Aske at 08:05 and reaches Tarn at 09:20.",
        "It leaves at 08:05 and arrives at 09:20, so the trip takes one hour and fifteen minutes.",
        "It leaves at 08:05 and arrives at 09:20, so the trip takes one hour and five minutes.",
    ),
    "nights between weekdays": (
        "You are booked from Tuesday 11 June to Friday 14 June.",
        "From Tuesday to Friday makes three nights.",
        "From Tuesday to Friday makes five nights.",
    ),
    "twice a number in a ban": (
        "Before the scan you must not eat for 6 hours; water is allowed.",
        "You must not eat for six hours.",
        "You must not eat for 12 hours.",
    ),
    "number behind a word": (
        "Storm is covered from force 8 on the Beaufort scale.",
        "Storm is covered from Beaufort force eight.",
        "Storm is covered from Beaufort force seven.",
    ),
    "full date": (
        "Returns are due on 31 July 2025; with an adviser on 30 April 2026.",
        "With an adviser your deadline is 30 April 2026.",
        "With an adviser your deadline is 31 March 2026.",
    ),
    "kelvin": (
        "The surface of the planet has a temperature of 315 kelvin.",
        "Its surface is at about 42 °C.",
        "Its surface is at 315 °C.",
    ),
    "another unit": (
        "Children from 6 months get 5 ml of the syrup, which has 24 mg of the drug in 1 ml.",
        "Children get 5 ml of the syrup.",
        "Children get 5 mg of the syrup.",
    ),
    "unit said once": (
        "`set(key, ttl=300)` stores a value; ttl is given in seconds.",
        "The entry expires after 300 seconds.",
        "The entry expires after 300 milliseconds.",
    ),
    "value of a key": (
        "Snapshots are kept for 35 days by default (`retention_days`).",
        "```yaml\nretention_days: 35\n```",
        "```yaml\nretention_days: 30\n```",
    ),
    "kilobits": (
        "After that the speed drops to 64 kbit/s.",
        "After that you surf at 0.064 Mbit/s.",
        "After that the speed drops to 64 Mbit/s.",
    ),
    "half a litre": (
        "Fill the tank with 0.5 litres of water.",
        "Fill the tank with half a litre of water.",
        "Fill the tank with three quarters of a litre of water.",
    ),
    "month without a day": (
        "Open daily from 10 May to 14 September until 8 p.m., in August until 9 p.m.",
        "In August it stays open until 9 p.m.",
        "In July it stays open until 9 p.m.",
    ),
    "currency said once": (
        "Revenue was 48.6 million euros, compared with 40.5 million the year before.",
        "Revenue was up by 8.1 million euros.",
        "Revenue was up by 9.1 million euros.",
    ),
    "French hours": (
        "Shuttles leave every 15 minutes from 3:30 p.m.",
        "Des navettes partent toutes les 15 minutes à partir de 15 h 30.",
        "Des navettes partent toutes les 15 minutes à partir de 16 h 30.",
    ),
    "off limits": (
        "After the treatment you must not drive for 24 hours.",
        "Driving is off limits for 24 hours after the treatment.",
        "Driving is off limits for 40 hours after the treatment.",
    ),
    "opening days": (
        "Overdue items cost 0.20 euros per item and opening day.",
        "Five opening days cost 1.00 euro per item.",
        "Five opening days cost 1.40 euros per item.",
    ),
    "years of a life": (
        "The archive holds letters of Ludmila Hain (1884-1969), who travelled there in 1911.",
        "She was 26 or 27 years old: born in 1884, she went there in 1911.",
        "She was 26 or 27 years old: born in 1884, she went there in 1921.",
    ),
    "counts without a noun": (
        "Her captain Ida Moen scored seven goals. Petra Nils was best with her nine goals.",
        "Petra Nils came out on top with nine goals, ahead of Ida Moen with seven.",
        "Ida Moen came out on top with nine goals, ahead of Petra Nils with seven.",
    ),
    "business days in Spanish": (
        "The visa is issued within eight working days.",
        "El visado se expide en un plazo de ocho días hábiles.",
        "El visado se expide en un plazo de nueve días hábiles.",
    ),
    "times a day in Polish": (
        "Temperatures must be written down twice a day.",
        "Temperatury należy zapisywać dwa razy dziennie.",
        "Temperatury należy zapisywać trzy razy dziennie.",
    ),
    "even if": (
        "No refund is due if the delay was caused by a strike of the crew.",
        "A refund is due unless the delay was caused by a strike of the crew.",
        "You get a refund even if the delay was caused by a strike of the crew.",
    ),
    "whether or not": (
        "Bicycles are covered against theft if they were locked.",
        "Stolen bicycles are covered if they were locked.",
        "Stolen bicycles are covered whether or not they were locked.",
    ),
    "including the exception": (
        "The museum is closed on Mondays except public holidays.",
        "The museum is closed on Mondays, but not on public holidays.",
        "The museum is closed on Mondays, public holidays included.",
    ),
    "including what never is": (
        "Backups are removed automatically after 30 days, but the newest one is never removed"
        " automatically.",
        "Backups are removed automatically after 30 days, all but the newest.",
        "All backups are removed automatically after 30 days, including the newest.",
    ),
    "without what is needed": (
        "First class needs the consent of the director and is for journeys over four hours.",
        "On journeys over four hours you may go first class with the director's consent.",
        "On journeys over four hours you may go first class without anybody's consent.",
    ),
    "only": (
        "Phones that were taken away are returned only to a parent.",
        "A phone that was taken away is returned to a parent.",
        "A phone that was taken away is returned either to the pupil or to a parent.",
    ),
    "may": (
        "Self-employed people may claim their actual costs instead.",
        "Self-employed people can claim their actual costs instead.",
        "Self-employed people have to claim their actual costs instead.",
    ),
    "either behind a denial": (
        "Children pay no late fees but do pay for lost items.",
        "Children pay for lost items.",
        "Children pay no late fees, and they do not pay for lost items either.",
    ),
    "capital abbreviation": (
        "Unpaid leave is approved by the department head, not by HR; HR only records it.",
        "Unpaid leave is approved by the department head. The decision is recorded by HR.",
        "Unpaid leave is approved by HR. The department head only records it.",
    ),
    "another place": (
        "The second version belongs to a private owner in Gothenburg.",
        "The second version belongs to a private owner in Gothenburg today.",
        "The second version belongs to a private owner in Oslo.",
    ),
    "since and before": (
        "Names are case-sensitive since version 3.0.",
        "Since version 3.0 names are case-sensitive.",
        "Before version 3.0 names were case-sensitive.",
    ),
    "names around after": (
        "Verhal attacked near the finish after Osei had caught the leading group.",
        "Osei caught the leading group, and then Verhal attacked near the finish.",
        "Verhal caught the leading group, and then Osei attacked near the finish.",
    ),
    # Which values occur a rule leaves open; what its limit is it does not.
    "lighter parcel": (
        "The shift lead accepts parcels up to 20 kg.",
        "A parcel weighing 18 kg can be accepted by the shift lead.",
        "The shift lead accepts parcels up to 25 kg.",
    ),
    "order at ten": (
        "Orders placed before 11:00 arrive on the next working day.",
        "If you order at ten in the morning, it arrives on the next working day.",
        "Orders placed before 12:00 arrive on the next working day.",
    ),
    "ten-year-old": (
        "Children from six years may borrow books.",
        "Your ten-year-old may borrow books.",
        "Children from eight years may borrow books.",
    ),
    "dearer course": (
        "The team lead approves courses up to 600 euros.",
        "A course of 800 euros needs the approval of the department head.",
        "The team lead approves courses up to 800 euros.",
    ),
    "longer job": (
        "Jobs on shared runners end after at most two hours.",
        "A job of three hours won't get through on a shared runner.",
        "Jobs on shared runners end after at most three hours.",
    ),
    "age in the present tense": (
        "Members under 21 pay 9 euros a month.",
        "A 19-year-old pays 9 euros a month.",
        "A 19-year-old pays 11 euros a month.",
    ),
    "month outside": (
        "The garden may be visited from April to 31 October.",
        "In December there is no way into the garden.",
        "The garden may be visited from April to 31 August.",
    ),
    "hour outside": (
        "Tenants may use the drying room from 6 am to 8 pm.",
        "At half past nine in the evening the drying room is shut.",
        "Tenants may use the drying room from 6 am to 10 pm.",
    ),
    "larger gift": (
        "Gifts over 250 euros are acknowledged by post.",
        "A gift of 320 euros is acknowledged by post.",
        "Gifts over 350 euros are acknowledged by post.",
    ),
    "dearer bicycle": (
        "Bicycles are insured up to \u20ac900.",
        "A \u20ac1,500 bicycle would not be replaced in full.",
        "Bicycles are insured up to \u20ac1,500.",
    ),
    "day inside": (
        "The hall is closed for repairs from 4 to 18 March.",
        "You cannot use the hall on 11 March.",
        "The hall is closed for repairs from 4 to 28 March.",
    ),
    "weaker gusts": (
        "The cable car stops at gusts above 70 km/h.",
        "So gusts of 50 km/h are no reason for it to stop.",
        "The cable car stops at gusts above 80 km/h.",
    ),
    "older card": (
        "Cards bought before 2020 have no expiry date.",
        "A card from 2018 never expires.",
        "Cards bought before 2022 have no expiry date.",
    ),
    "aged": (
        "Applicants over 70 are exempt from the fee of 25 euros.",
        "Somebody aged 75 does not pay the 25 euros.",
        "Applicants over 70 are exempt from the fee of 35 euros.",
    ),
    # Also where a number leaves its unit out, and where nothing says that years are years.
    "dollars a year more": (
        "Lake Card: annual fee 55 dollars. Hill Card: annual fee 190 dollars.",
        "The Hill Card costs 135 dollars a year more than the Lake Card.",
        "The Hill Card costs 125 dollars a year more than the Lake Card.",
    ),
    "cheaper by": (
        "Plan Small costs \u20ac8 a month. Plan Large costs \u20ac21 a month.",
        "Small is the cheaper of the two by \u20ac13 a month.",
        "Small is the cheaper of the two by \u20ac12 a month.",
    ),
    "minutes shorter": (
        "Tours take 55 minutes, or 30 when the crypt is left out.",
        "Without the crypt, the tour is 25 minutes shorter.",
        "Without the crypt, the tour is 40 minutes shorter.",
    ),
    "members save": (
        "The hall can be hired for 140 euros; members pay 85.",
        "As a member you save 55 euros.",
        "As a member you save 65 euros.",
    ),
    "years that nobody calls years": (
        "Ilva, countess of Marn from 1402 to 1437, moved the court.",
        "She reigned for 35 years.",
        "She reigned for 45 years.",
    ),
    "more than last year": (
        "We counted 52 nests, seven more than last year.",
        "There were 45 nests the year before.",
        "There were 41 nests the year before.",
    ),
    "some of all": (
        "14 of 620 positions differed from the books.",
        "The count agreed in 606 positions.",
        "The count agreed in 596 positions.",
    ),
    "raised by": (
        "The tower was raised by 7 metres to 34 metres in 1891.",
        "Originally it stood 27 metres high.",
        "Originally it stood 23 metres high.",
    ),
    "share of a sale": (
        "The market takes 6 percent of the price from sellers.",
        "On a sale of 50 euros you would give up 3 euros.",
        "On a sale of 50 euros you would give up 4.50 euros.",
    ),
    "per litre": (
        "The paint covers 8 square metres per litre.",
        "Five litres cover 40 square metres.",
        "Five litres cover 55 square metres.",
    ),
    "months of a range": (
        "The board resolved to test the late bus from April to July.",
        "The trial is meant to run for four months.",
        "The trial is meant to run for six months.",
    ),
}
GRID = (
    "Lending rules\n| Item | Loan period | Late fee |\n|---|---|---|\n| Books | 28 days | $0.20 |\n"
    "| Magazines | 14 days | $0.20 |\n| Board games | 21 days | $0.50 |\n"
)
TRAINS = (
    "| Train | Norby | Halst | Bikes |\n|---|---|---|---|\n| K 11 | 06:12 | 06:47 | yes |\n"
    "| K 13 | 07:42 | 08:17 | no |\n| K 15 | 09:12 | 09:51 | yes |\n"
)
FEES = (
    "| Delay | Private person | Company |\n|---|---|---|\n| up to 30 days | 25 EUR | 100 EUR |\n"
    "| 31 to 90 days | 75 EUR | 250 EUR |\n| more than 90 days | 150 EUR | 600 EUR |\n"
)
COVER = (
    "| Benefit | Basic | Plus |\n|---|---|---|\n| Medical costs | €500,000 | €2,000,000 |\n"
    "| Baggage | €800 | €1,500 |\n\nIn Plus, winter sports need the package (€24), which is not"
    " available with Basic."
)
RATES = (
    "| Weight | Domestic | EU | World |\n|---|---|---|---|\n| up to 2 kg | 5.20 | 14.90 | 24.50 |\n"
    "| up to 5 kg | 6.90 | 18.40 | 38.00 |\n| up to 10 kg | 9.40 | 23.90 | 57.50 |\n"
)
TABLE_PAIRS = {
    "row": (GRID, "A board game is lent for 21 days.", "A board game is lent for 14 days."),
    "row of a pronoun": (
        GRID,
        "A board game is for adults. It is lent for 21 days.",
        "A board game is for adults. It is lent for 28 days.",
    ),
    "row of a range": (
        FEES,
        "A company pays 250 EUR.",
        "A company pays 600 EUR.",
        "We were 45 days late. What do we pay?",
    ),
    "row above a bound": (
        FEES,
        "A private person pays 150 EUR.",
        "A private person pays 75 EUR.",
        "What does somebody pay who is 120 days late?",
    ),
    "column": (
        TRAINS,
        "The K 13 reaches Halst at 08:17.",
        "The K 13 reaches Halst at 07:42.",
    ),
    "prices without a sign": (
        RATES,
        "Within the EU that is 18.40 euros.",
        "Within the EU that is 38.00 euros.",
        "What does a parcel of 4 kg cost?",
    ),
    "cell of the answer": (
        RATES,
        "| Weight | EU |\n|---|---|\n| up to 5 kg | 18.40 |",
        "| Weight | EU |\n|---|---|\n| up to 5 kg | 18.90 |",
    ),
    "cells under names": (
        COVER,
        "- Basic: €800\n- Plus: €1,500",
        "- Basic: €900\n- Plus: €1,500",
        "How much baggage cover does each plan give?",
    ),
    "short month": (
        "| Crop | Sow indoors | Plant out |\n|---|---|---|\n"
        "| Leek | Feb\u2013Mar | May\u2013Jun |\n"
        "| Courgette | Apr | late May |\n",
        "Courgettes are started indoors in April and planted out in late May.",
        "Courgettes are started indoors in September and planted out in late May.",
    ),
    "yes and no": (TRAINS, "The K 15 takes bikes.", "The K 13 takes bikes."),
    "no and yes": (TRAINS, "The K 13 takes no bikes.", "The K 15 takes no bikes."),
    "all": (TRAINS, "The K 11 takes bikes.", "All trains take bikes."),
    "two rows": (
        GRID,
        "Books are lent for 28 days, magazines for 14 days.",
        "Books are lent for 14 days, magazines for 28 days.",
    ),
}


def score(passage: str, claim: str, question: str | None = None) -> float:
    """Return the score that the rules alone give an answer: `doubt` weighs it as a whole."""
    sample = SegmentedSample(Sample(claim, question, (Passage(passage),)))
    return min((one.score for one in verdicts(sample, claims_of(sample).stated)), default=1.0)


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_is_told_apart(name: str) -> None:
    """The true claim passes, its false twin does not."""
    passage, true, false = PAIRS[name]
    assert score(passage, true) >= CUT
    assert score(passage, false) < CUT


@pytest.mark.parametrize("name", TABLE_PAIRS)
def test_a_table_is_read(name: str) -> None:
    """A value passes in its own row and column, and not in another's."""
    passage, true, false, *question = TABLE_PAIRS[name]
    assert score(passage, true, *question) >= CUT
    assert score(passage, false, *question) < CUT


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        ("The tablets contain lactose but no gluten.", "It is gluten-free but has lactose."),
        ("The museum is closed on 24, 25 and 26 December.", "It shuts on 24\u201326 December."),
        (
            "Adults pay 2.40 in zone 1 and 5.10 in zone 3. Day tickets cost twice the single fare.",
            "Day tickets come to 4.80 and 10.20.",
        ),
        (
            "Orrin won four. Castow play Orrin at home and Hemsel travel to Tamble.",
            "The table reads:\n\n1. Orrin: 8 points\n2. Tamble: 7 points\n3. Castow: 6 points\n"
            "4. Hemsel: 3 points",
        ),
        (
            "GET /contacts returns pages. per_page sets the size; the maximum is 500.",
            "You need just 46 requests:\n\nGET /contacts?per_page=500&page=1\n...\n"
            "GET /contacts?per_page=500&page=46",
        ),
        (
            "The scholarship is open to students who are enrolled in a master's course.",
            "What would rule you out is an incomplete letter, not being enrolled in a master's"
            " course.",
        ),
        (
            "Paint covers 10 square metres per litre and coat.",
            "Here's an example: a room of 4 m by 3 m has about 35 m² of wall.",
        ),
        ("Apply 1.5 kg per hectare.", "One hectare is about 2.47 acres: 0.61 kg per acre."),
        ("Connections must not be shared by threads.", "Give each thread its own connection."),
        ("Yields from 2020 to 2023 were 4.1, 3.6, 4.8, 4.3 t.", "The best was 4.8 t in 2022."),
        ("Applied steps must not be edited.", "Code 4 means that somebody edited an applied step."),
        ("Come by 10.45; the ferry leaves at 11.25.", "With a vehicle check in by 10.05."),
        ("The show takes place daily at noon and 3 p.m.", "There is a show at noon and 3 p.m."),
    ],
)  # fmt: skip
def test_what_good_answers_say_is_not_flagged(passage: str, answer: str) -> None:
    """Other words for what a passage says, and what everybody can work out."""
    assert score(passage, answer) >= CUT


@pytest.mark.parametrize(("question", "is_found"), [("last year's invoices?", False), ("", True)])
def test_a_date_that_depends_on_today_is_no_invention(question: str, is_found: bool) -> None:
    """Who asks for "last year" is told dates that no passage has."""
    passage = "export takes --from and --to with dates as YYYY-MM-DD, both inclusive."
    answer = "Run export with --from 2025-01-01 and --to 2025-12-31, both inclusive."
    assert (score(passage, answer, question) < CUT) == is_found


def test_only_the_answers_own_calculation_explains_a_number() -> None:
    """Of a passage's many numbers some always fit: nobody computed the audio guide's price."""
    passage = "Adults pay €13. A family ticket for two adults costs €31. The audio guide costs €4."
    assert score(passage, "The family ticket is €31. An audio guide can be added for €4.") >= CUT
    assert score(passage, "The family ticket is €31. An audio guide can be added for €9.") < CUT


@pytest.mark.parametrize(
    ("passage", "wrong"),
    [
        ("Guests pay a deposit of up to 200 euros.", "There is a deposit of 300 euros."),
        ("Storm is covered from force 8.", "Storm is covered once it reaches force 7."),
        ("The warranty covers two years.", "A warranty of three years covers the pump."),
        ("Clark, 45, was fined.", "A 38-year-old man was fined."),
        (
            "Ms Alba, 51, has had a cough for two weeks.",
            "The patient is a 41-year-old with a cough.",
        ),
        ("Police hold a driver, 23, over the crash.", "A 32-year-old man is in custody."),
        ("The hall opens in April.", "In June the hall opens."),
    ],
)
def test_what_is_measured_is_no_case(passage: str, wrong: str) -> None:
    """A fee, a deposit or a warranty of a size is what a passage says."""
    assert score(passage, wrong) < CUT


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        (
            "The tablet crash came from the map library, not from our code.",
            "The culprit in the tablet crash was the map library rather than our own code.",
        ),
        (
            "We visit new homes before handing over rabbits, but not guinea pigs.",
            "Guinea pigs are the exception: no visit is needed for them.",
        ),
    ],
)
def test_a_denial_in_other_words_is_no_contradiction(passage: str, answer: str) -> None:
    """Contrasts and exceptions may say what a passage's "but not" says."""
    assert score(passage, answer) >= CUT


@pytest.mark.parametrize(
    ("passage", "wrong"),
    [
        (
            "The exam takes place on 12 May 2024. Results are posted the next day.",
            "The exam takes place on 13 May 2024.",
        ),
        (
            "The contract ends in 2026. Prices for the following year are set in June.",
            "The contract ends in 2027.",
        ),
        ("The pool is open until 31 August.", "The pool is open until September."),
        ("Registration ends on 31 March.", "Registration ends in April."),
        (
            "The ferry sails at 30 km/h. It leaves at 9:00.",
            "At 30 km/h the ferry covers 90 km in 3 hours.",
        ),
        (
            "It has a 50 kWh battery, a 100 kW motor and a 10 kW charger; charging takes 7 hours.",
            "The 50 kWh battery charges in 5 hours.",
        ),
        (
            "A day ticket costs 12 euros for adults.",
            "For example, a day ticket costs 15 euros for adults. It costs 15 euros.",
        ),
        (
            "Adults take 500 mg at most every 6 hours.",
            "Adults may take, for example, 900 mg every 6 hours.",
        ),
        (
            "The upload limit is 20 MB for each file.",
            "As example.com says, the upload limit is 50 MB for each file.",
        ),
        ("The museum is being rebuilt this year.", "The museum is not being rebuilt this year."),
        ("New members are not being admitted this year.", "New members are admitted this year."),
        ("He scored 14 goals in the 2018-19 season.", "He scored 14 goals in the 2017-18 season."),
        (
            "First knead the dough for 5 minutes, then let it rise for 60, then bake it for 30.",
            "1. Bake it: 30 minutes\n2. Let it rise: 60 minutes\n3. Knead the dough: 5 minutes",
        ),
        (
            "First drain all the water from the boiler, then remove the cover of the pump.",
            "First remove the cover of the pump, then drain all the water from the boiler.",
        ),
        (
            '"volume" is a number from 0 to 100. "fontSize" must be from 10 to 32.',
            '{\n  "fontSize": 40\n}',
        ),
        (
            "max_connections is at most 200. retry_delay is given in seconds; the default is 5.",
            "retry_delay = 150",
        ),
        (
            "Rooms for 8 to 12 people. Breakfast is from 7:30.",
            "Breakfast is until 12 noon, from 8 am.",
        ),
        (
            "Treatment lasts 5 days. A check follows after 3 weeks.",
            "Treatment lasts 5 days, with a check after 3 weeks. You stay at home for 15 days.",
        ),
        (
            "The desk serves 12 people an hour. Waiting in line is normal.",
            "Waiting takes 5 minutes.",
        ),
        (
            "Adult 12 euros, child 5 euros, senior 9 euros.",
            "| Ticket | Price |\n|---|---|\n| Adult + child | €14 |",
        ),
        (
            "Your fee is 250 euros and the fine 90 euros.",
            "With reference 160, your fee is €250 and the fine €410.",
        ),
        ("The engine switches off at 150 °C.", "The engine switches off at 310 °F."),
        ("Bake at 200 °C.", "Bake at 385 °F."),
        (
            "Children from 6 to 11 years take half a tablet twice a day, at most three a day.",
            "Children between 3 and 11 years of age take half a tablet twice a day.",
        ),
        ("Sections from start to end of the trail are 12 and 30 km long.", "The route is 18 km."),
    ],
)
def test_an_excuse_does_not_cover_a_wrong_answer(passage: str, wrong: str) -> None:
    """What follows from the next day, a limit, an example or a rate has to be about the same."""
    assert score(passage, wrong) < CUT


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        (
            "The notes are from 11 March 2024. He wrote the next day that it worked.",
            "He wrote on 12 March that it worked.",
        ),
        (
            "The engine oil must be changed every 2000 hours of operation.",
            "The engine oil is to be changed after 2000 hours of operation.",
        ),
        (
            "Five minutes before the end the alarm rang.",
            "At one point five minutes before the end, the alarm rang.",
        ),
        ("You need 4 x 5 m of rope.", "You need 4 x 5 m = 20 m of rope."),
    ],
)
def test_a_rule_for_numbers_spares_what_only_looks_like_it(passage: str, answer: str) -> None:
    """Hours of operation are no time of day, a point no decimal sign, a factor no side."""
    assert score(passage, answer) >= CUT
