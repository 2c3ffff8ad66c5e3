"""National identity, tax and health numbers of persons: forms, announcing words, check digits.

Sources of forms and check digits: python-stdnum's module of the same name, which cites the issuer;
the few computed here name their source in `pii/checks.py`. Company numbers are not personal data.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class National:
    r"""One number.

    Attributes:
        id: Our name, country code first.
        name: What a report calls it.
        aliases: Other tools' names.
        module: python-stdnum module, or `own:` and a function of `checks.py`; empty: form only.
        cue: Words that announce it, RE2, matched as whole words in any case.
        forms: RE2 forms so particular that no announcing word is needed.
        lengths: How many letters and digits the bare number has, for use in context; may be empty.
        ignore_case: Whether the forms may be written in lower case.
        gate: See `Pattern.gate`; forms that begin with letters cost hyperscan most.
        bare: How many digits it has where digits in prose count, unannounced: only where a random
            number of that length passes its checks less than once in fifty; else 0.
    """

    id: str
    name: str
    aliases: tuple[str, ...]
    module: str
    cue: str
    forms: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    ignore_case: bool = False
    gate: str = ""
    bare: int = 0

    @property
    def country(self) -> str:
        """Return the issuing country's code."""
        return self.id.partition("_")[0].upper()

    @property
    def checked(self) -> bool:
        """Return whether check digits or embedded dates are verified."""
        return bool(self.module) and self.id not in _FORM_ONLY

    @property
    def how(self) -> str:
        """Return how it is recognised, for people."""
        parts = ["its printed form"] if self.forms else []
        if self.bare:
            parts.append(f"{self.bare} digits")
        if self.lengths:
            sizes = " or ".join(map(str, self.lengths))
            parts.append(f"{sizes} characters in context")
        return "; ".join(parts)


_N = National
_FORM_ONLY = frozenset({"de_tax_number", "in_voter", "uk_nino"})
"""Numbers whose module verifies allowed letters, lengths and offices only."""
_DMY = r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d{2}"
_YMD = r"\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_FISCAL_DIGITS = r"\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"
_FISCAL = "[A-Z]{6}" + _FISCAL_DIGITS
_NIR = r"[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}"
_NINO = r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"
_RIC = r"[1-8]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx]"
_CURP = r"[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d"

NATIONAL: tuple[National, ...] = (
    _N("ar_cuit", "Argentine CUIT/CUIL", ("AR_CUIT",), "ar.cuit", r"cui[tl]",
       (r"(?:20|23|24|27)-\d{8}-\d",), (11,)),
    _N("at_vnr", "Austrian insurance number", ("AT_VNR",), "at.vnr",
       r"sozialversicherungsnummer|svnr|sv-nummer|versicherungsnummer|social security", (), (10,)),
    _N("au_medicare", "Australian Medicare number", ("AU_MEDICARE",), "own:au_medicare",
       r"medicare", (), (10, 11)),
    _N("au_tfn", "Australian tax file number", ("AU_TFN",), "au.tfn",
       r"tfn|tax file (?:number|no)", (), (8, 9)),
    _N("be_nn", "Belgian national number", ("BE_NN",), "be.nn",
       r"rijksregisternummer|registre national|national (?:register )?number|niss|insz",
       (r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}",), (11,), bare=11),
    _N("bg_egn", "Bulgarian EGN", ("BG_EGN",), "bg.egn", r"egn|егн", (), (10,)),
    _N("br_cpf", "Brazilian CPF", ("BR_CPF",), "br.cpf", r"cpf",
       (r"\d{3}\.\d{3}\.\d{3}-\d{2}",), (11,), bare=11),
    _N("ca_sin", "Canadian social insurance number", ("CA_SIN",), "ca.sin",
       r"social insurance(?: number)?|(?-i:SIN|NAS)|numéro d'assurance sociale",
       (r"[1-79]\d{2}-\d{3}-\d{3}",), (9,)),
    _N("ch_ahv", "Swiss AHV number", ("CH_SSN", "CH_AHV"), "ch.ssn",
       r"ahv(?:-nummer)?|avs|sozialversicherungsnummer",
       (r"756\.\d{4}\.\d{4}\.\d{2}",), (13,)),
    _N("cl_rut", "Chilean RUT", ("CL_RUT",), "cl.rut", r"rut|(?-i:RUN)",
       (r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]",), (8, 9)),
    _N("cn_ric", "Chinese resident identity number", ("CN_RIC", "CN_ID"), "cn.ric",
       r"身份证|resident identity|identity card", (_RIC,)),
    _N("cu_ni", "Cuban identity number", ("CU_NI",), "cu.ni",
       r"carn[eé] de identidad|n[uú]mero de identidad", (), (11,)),
    _N("cz_rc", "Czech or Slovak birth number", ("CZ_RC", "SK_RC"), "cz.rc",
       r"rodné číslo|rodne cislo|rč|birth number", (r"\d{6}/\d{4}",), (9, 10)),
    _N("de_tax_id", "German tax id", ("DE_TAX_ID", "DE_IDNR"), "de.idnr",
       r"steuer-?id(?:entifikationsnummer)?|id-?nr\.?|steuerliche identifikationsnummer|tax id",
       (), (11,)),
    _N("de_tax_number", "German tax number", ("DE_TAX_NUMBER", "DE_STNR"), "de.stnr",
       r"steuer-?n(?:umme)?r\.?|st\.?-?nr\.?|tax number", (), (10, 11, 13)),
    _N("de_social_security", "German social insurance number",
       ("DE_SOCIAL_SECURITY", "DE_RVNR", "DE_SVNR"), "own:de_svnr",
       r"rvnr|sv-?nummer|(?:sozial|renten)versicherungs(?:nummer|ausweis)",
       (r"\d{2}[0-8]\d[01]\d{3}[A-Z]\d{3}", r"\d{2} [0-8]\d[01]\d{3} [A-Z] \d{3}"), (12,)),
    _N("de_health_insurance", "German health-insurance number",
       ("DE_HEALTH_INSURANCE", "DE_KVNR"), "own:de_kvnr",
       r"kvnr|egk(?:-nummer)?|kranken(?:versicherten|versicherungs|kassen)-?(?:nummer|nr)"
       r"|krankenkasse|versichertennummer", (), (10,)),
    _N("de_lanr", "German physician number", ("DE_LANR",), "own:de_lanr",
       r"lanr|arzt-?n(?:umme)?r", (), (9,)),
    _N("dk_cpr", "Danish CPR number", ("DK_CPR",), "dk.cpr",
       r"cpr(?:-?nummer|-?nr)?|personnummer", (), (10,)),
    _N("do_cedula", "Dominican cédula", ("DO_CEDULA",), "do.cedula", r"c[eé]dula",
       (r"\d{3}-\d{7}-\d",), (11,)),
    _N("ec_ci", "Ecuadorian identity number", ("EC_CI",), "ec.ci",
       r"c[eé]dula(?: de identidad)?", (), (10,)),
    _N("ee_ik", "Estonian personal code", ("EE_IK",), "ee.ik", r"isikukood|personal code",
       (), (11,), bare=11),
    _N("es_nie", "Spanish NIE", ("ES_NIE",), "es.nie", r"nie", (r"[XYZ]-?\d{7}-?[A-Z]",), (9,),
       True),
    _N("es_nif", "Spanish NIF/DNI", ("ES_NIF", "ES_DNI"), "own:es_dni", r"nif|dni",
       (r"\d{8}-?[A-HJ-NP-TV-Z]",), (8, 9)),
    _N("fi_hetu", "Finnish identity code", ("FI_PERSONAL_IDENTITY_CODE", "FI_HETU"), "own:fi_hetu",
       r"hetu|henkilötunnus|personal identity code", (_DMY + r"[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]",),
       (), True),
    _N("fr_nir", "French social security number", ("FR_NIR", "FR_SSN"), "fr.nir",
       r"sécurité sociale|nir|securite sociale", (_NIR,), (15,)),
    _N("gr_amka", "Greek AMKA", ("GR_AMKA",), "gr.amka", r"amka|αμκα", (), (11,), bare=11),
    _N("hk_hkid", "Hong Kong identity card", ("HK_HKID",), "own:hkid", r"hkid",
       (r"[A-Z]{1,2}\d{6}\([0-9A]\)",), (8, 9)),
    _N("hr_oib", "Croatian OIB", ("HR_OIB",), "hr.oib", r"oib", (), (11,)),
    _N("id_nik", "Indonesian NIK", ("ID_NIK",), "id.nik", r"nik|ktp", (), (16,)),
    _N("ie_pps", "Irish PPS number", ("IE_PPS",), "ie.pps", r"pps(?:n| number| no)?", (), (8, 9)),
    _N("il_id", "Israeli identity number", ("IL_ID",), "il.idnr",
       r"teudat zehut|mispar zehut|israeli id|תעודת זהות|מספר זהות", (), (9,)),
    _N("in_aadhaar", "Indian Aadhaar", ("IN_AADHAAR",), "in_.aadhaar", r"aadhaa?r|uidai|आधार",
       (r"[2-9]\d{3}[ -]\d{4}[ -]\d{4}",), (12,)),
    _N("in_pan", "Indian PAN of a person", ("IN_PAN",), "in_.pan",
       r"(?-i:PAN)|permanent account number", (r"[A-Z]{3}P[A-Z]\d{4}[A-Z]",), (10,)),
    _N("in_voter", "Indian voter id", ("IN_VOTER",), "own:in_voter",
       r"voter(?:'s)?(?: id| card)?|epic", (), (10,)),
    _N("is_kennitala", "Icelandic kennitala", ("IS_KENNITALA",), "is_.kennitala",
       r"kennitala|kt", (_DMY + r"-\d{4}",), (10,)),
    _N("it_fiscal_code", "Italian fiscal code", ("IT_FISCAL_CODE",), "it.codicefiscale",
       r"codice fiscale|fiscal code", (_FISCAL,), (), True, _FISCAL_DIGITS),
    _N("jp_my_number", "Japanese individual number", ("JP_MY_NUMBER",), "jp.in_",
       r"my number|マイナンバー|個人番号", (), (12,)),
    _N("kr_rrn", "Korean resident registration number", ("KR_RRN", "KR_FRN"), "own:kr_rrn",
       r"rrn|frn|resident registration|주민등록번호|외국인등록번호",
       (_YMD + r"-[1-8]\d{6}",), (13,)),
    _N("lt_ak", "Lithuanian personal code", ("LT_AK",), "lt.asmens",
       r"asmens kodas|personal code", (), (11,)),
    _N("mx_curp", "Mexican CURP", ("MX_CURP",), "mx.curp", r"curp", (_CURP,), (), True,
       r"\d{6}[HM][A-Z]{5}"),
    _N("my_nric", "Malaysian identity card", ("MY_NRIC",), "my.nric", r"nric|mykad",
       (_YMD + r"-\d{2}-\d{4}",), (12,)),
    _N("nl_bsn", "Dutch BSN", ("NL_BSN",), "nl.bsn",
       r"bsn|burgerservicenummer|sofinummer|citizen service number", (), (9,)),
    _N("no_fnr", "Norwegian birth number", ("NO_FNR",), "no.fodselsnummer",
       r"f[øo]dselsnummer|personnummer|fnr", (), (11,), bare=11),
    _N("nz_ird", "New Zealand IRD number", ("NZ_IRD",), "nz.ird", r"ird(?: number| no)?",
       (), (8, 9)),
    _N("pe_cui", "Peruvian identity number", ("PE_CUI",), "pe.cui", r"dni|cui", (), (9,)),
    _N("ph_tin", "Philippine taxpayer number", ("PH_TIN",), "own:ph_tin",
       r"(?-i:TIN)|taxpayer identification number|(?-i:BIR)", (), (9, 12)),
    _N("pk_cnic", "Pakistani CNIC", ("PK_CNIC",), "pk.cnic", r"cnic", (r"[1-7]\d{4}-\d{7}-\d",),
       (13,)),
    _N("pl_pesel", "Polish PESEL", ("PL_PESEL",), "pl.pesel", r"pesel(?:u|em)?", (), (11,),
       bare=11),
    _N("pt_cc", "Portuguese citizen card", ("PT_CC",), "pt.cc", r"cart[aã]o de cidad[aã]o",
       (r"\d{8} \d ?[A-Z0-9]{2}\d",), (12,)),
    _N("pt_nif", "Portuguese NIF", ("PT_NIF",), "pt.nif", r"nif|contribuinte", (), (9,)),
    _N("ro_cnp", "Romanian CNP", ("RO_CNP",), "ro.cnp", r"cnp|cod numeric personal", (), (13,),
       bare=13),
    _N("ru_inn", "Russian INN of a person", ("RU_INN",), "ru.inn", r"инн|inn", (), (12,)),
    _N("se_personnummer", "Swedish personal number", ("SE_PERSONNUMMER",), "se.personnummer",
       r"personnummer|personal identity (?:code|number)|samordningsnummer|pnr",
       (r"(?:19|20)?" + _YMD + r"[-+]\d{4}", "19" + _YMD + r"\d{4}"), (10, 12)),
    _N("sg_nric", "Singapore NRIC/FIN", ("SG_NRIC_FIN", "SG_FIN", "SG_NRIC"), "own:sg_nric",
       r"nric|fin", (r"[STFGM]\d{7}[A-Z]",), (9,), True),
    _N("si_emso", "Slovenian EMŠO", ("SI_EMSO",), "si.emso", r"em[šs]o|jmbg", (), (13,), bare=13),
    _N("th_pin", "Thai identity number", ("TH_TNIN", "TH_PIN"), "th.pin",
       r"บัตรประชาชน|ประจำตัวประชาชน|thai(?:land)? (?:national )?id|tnin",
       (r"\d-\d{4}-\d{5}-\d{2}-\d",), (13,)),
    _N("tr_tckn", "Turkish identity number", ("TR_NATIONAL_ID", "TR_TCKN"), "tr.tckimlik",
       r"t\.?c\.? ?kimlik|tckn|kimlik (?:no|numaras\x{131})|turkish id", (), (11,), bare=11),
    _N("tw_id", "Taiwanese identity number", ("TW_ID",), "own:tw_id",
       r"身分證|taiwan(?:ese)? id|national id", (), (10,)),
    _N("ua_rntrc", "Ukrainian taxpayer number", ("UA_RNTRC",), "ua.rntrc",
       r"рнокпп|іпн|rntrc|taxpayer number", (), (10,)),
    _N("uk_nhs", "British NHS number", ("UK_NHS",), "gb.nhs", r"nhs(?: number| no)?",
       (r"[4679]\d{2}[ -][01]\d{2}[ -]\d{4}",), (10,)),
    _N("uk_nino", "British national insurance number", ("UK_NINO",), "own:uk_nino",
       r"national insurance(?: number| no)?|nino|ni number",
       (_NINO + r" \d{2} \d{2} \d{2} [A-D]", _NINO + r" \d{6}[A-D]"), (9,)),
    _N("us_npi", "US provider number (NPI)", ("US_NPI",), "own:us_npi",
       r"npi|(?:national )?provider (?:identifier|id|number)", (), (10,)),
    _N("za_id", "South African identity number", ("ZA_ID_NUMBER", "ZA_ID"), "own:za_id",
       r"(?:south african|rsa|sa) id|id number|identity number|permanent resident", (), (13,),
       bare=13),
)  # fmt: skip
