"""Word lists that tell a full stop inside a sentence from one that ends it. Data only.

Words are stored lower-case and without their final stop. The lists are written from general
knowledge of each language; a missing word costs one wrong split before a capital letter.
"""

# Words of many languages, one string per group: a list literal would be ten times as long.
# ruff: noqa: RUF001, SIM905

NEVER_END = frozenset(
    # Titles and forms of address: a name follows.
    "dr mr mrs ms messrs prof gen sen rep gov hon rev lt capt cmdr sgt maj adm amb supt msgr mt "
    "hr fr frl dipl ing mme mlle mgr sra srta dra dña ud uds lic sig dott avv geom "
    "dhr mevr drs inż exmo exma "
    # Words that introduce something.
    "e.g i.e eg ie cf viz vs resp incl excl esp approx ca al "
    "z.b d.h u.a i.d.r bzw vgl ggf evtl inkl zzgl sog "
    "p.ex p.ej c.-à-d c.à.d env aprox "
    "bijv d.w.z o.a t.ex bl.a s.k np tzw tzv např m.in t.j tj "
    "т.е т.к см им ср напр ул просп".split()
)

BEFORE_NUMBER = frozenset(
    # Inside a sentence when a number follows: "No. 5"; otherwise an ordinary word: "No. It is".
    "no nos n° nº nr núm num fig figs eq eqs sec secs sect ch chap chaps vol vols pp p pg art arts "
    "ref refs tab app ex ed eds min max sub para cl col ann kap "
    "abs bd s pág págs pag rys tab str č рис табл стр гл п ст tel fax ph ext".split()
)

MAY_END = frozenset(
    # Ends a sentence only when the next word is one that often starts sentences.
    "inc ltd corp co llc plc bros assn dept univ govt est intl natl st ave blvd rd hwy sq apt "
    "jr sr esq phd md ba bs ma mba jan feb mar apr jun jul aug sep sept oct nov dec "
    "mon tue tues wed thu thur thurs fri sat sun str tel mio mrd tys mln "
    "млн млрд тыс руб коп др пр проф акад".split()
)

LIST_ENDINGS = frozenset("etc usw ecc enz itd itp atd т.д т.п гг osv".split())
"""Ends a sentence when any capital follows."""

CLOCK = frozenset({"a.m", "p.m"})
AFTER_CLOCK = frozenset(
    "Eastern Central Mountain Pacific EST EDT CST CDT MST MDT PST PDT GMT UTC CET BST "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
)

STARTERS = frozenset(
    "The A An This That These Those It He She They We You I His Her Their Its Our Your My One "
    "There Here In On At By For From With Without After Before During Since Until While When "
    "Where Why How What Who Which If As Although Though Because But And Or So Yet Nor However "
    "Moreover Furthermore Therefore Thus Also Another Other Many Most Some Several Few Each Every "
    "All Both No Not Nobody Only Now Then Today Later Finally First Second Third Such To Under "
    "Is Are Was Were Do Does Did Can Could Should Would Will Please See "
    "Der Die Das Den Dem Es Er Sie Wir Ihr Ein Eine Im Am Bei Nach Seit Danach Heute Auch "
    "Le La Les L' Il Elle Ils Elles On Un Une Ce Cette Ces Dans En Au Aux Après Pour "
    "El Los Las Una Su Sus Se Por Con Tras Este Esta Lo Gli Nel Nella Ha È Os As O E Em No Na Ao "
    "De Het Een Hij Zij Ze Wij In Op "
    "Это Он Она Они Оно В На С По После Сейчас Этот Эта Его Её И Но Как".split()
)

MONTHS = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november dezember "
    "marts maj oktober mars kesäkuuta toukokuuta ledna února března dubna května června července "
    "srpna září října listopadu prosince stycznia lutego marca kwietnia maja czerwca lipca "
    "sierpnia września października listopada grudnia".split()
)

BEFORE_ORDINAL = frozenset(
    # German words before "3." when it means "third".
    "am im vom zum beim der die das dem den des ab bis seit nach vor".split()
)

LINE_JOINERS = frozenset(
    # A line that ends in one of these was wrapped, whatever the next line starts with.
    "the a an of in on at by for from with to and or nor but is are was were be as that which "
    "than into its their his her this these between under over per via dr mr mrs "
    "der die das den dem des ein eine und oder von vom zu zum zur mit für im am auf "
    "le la les l du de des un une et ou à au aux en dans par pour sur "
    "el los las del y o con por para di il lo gli della e da do dos em na het een van".split()
)
