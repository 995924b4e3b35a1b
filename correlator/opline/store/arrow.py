# SPDX-License-Identifier: MIT
"""What Arrow's readers (pyarrow, pandas, polars) want to know of a table's columns besides their Parquet types: which
text is a dictionary, and each column's meaning. The tables' files carry it as ``ARROW:schema``.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

from opline.store.schema import TableSpec

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """The table's schema; each field carries its meaning as metadata."""
    import pyarrow as pa

    types = {
        "i64": pa.int64(),
        "u64": pa.uint64(),
        "i32": pa.int32(),
        "u32": pa.uint32(),
        "bool": pa.bool_(),
        "dict": pa.dictionary(pa.int32(), pa.string()),
        "text": pa.string(),
    }
    return pa.schema([pa.field(c.name, types[c.type], metadata={"meaning": c.meaning}) for c in spec.columns])


def encoded(spec: TableSpec) -> str:
    """The schema as files carry it: Arrow's IPC message in base64."""
    return base64.b64encode(arrow_schema(spec).serialize()).decode()


def schema_of(table: str) -> str:
    """The table's schema as files carry it, without pyarrow."""
    return base64.b64encode(zlib.decompress(base64.b64decode("".join(_PACKED[table])))).decode()


# Written down (`make docs`), so that writing a run does not wait for pyarrow; packed, as most of it is zeros.
# fmt: off
_PACKED: dict[str, tuple[str, ...]] = {
    # [[[cog
    # import textwrap
    # import base64, zlib
    # from opline.store.arrow import encoded
    # from opline.store.schema import TABLES
    # for spec in TABLES:
    #     print(f'    "{spec.name}": (')
    #     for line in textwrap.wrap(base64.b64encode(zlib.compress(base64.b64decode(encoded(spec)), 9)).decode(), 108):
    #         print(f'        "{line}",')
    #     print("    ),")
    # ]]]
    "ops": (
        "eNqFWE2IHEUUrmz2Z4yjWReJUYKWGtxdmd3kEGLID0gSwwohLrKGIIHZnu7anc72dLXdNfsje1gkhz0ECSKyeAoSPHkIIuIhhxxEJHgSDx5y",
        "8JCj6CbZZP+3fa+qeqqmZ4IDb6cyXVXfV6/e+97rpGmaLr9AyIsk++whRdJNukgBRvDZ1Uk64WvlnzTF79fAjsH82V5C7uwl5CTYjecJKYJF",
        "zxHyU5GQA2Dzz8JEsEXYpAi29AwhB8F+KBCy3APrwe51EzICdq2LkC3YfAHs3m74Dey3DkJGwZZ2wXqwedgO8S/+m6ZAqgP5XgaD7ch+zRy2",
        "JxU26YdlN6ojdb1mBNYc1OOXwM6MfkT5BBVVRuV0GnE/FMMEKJEac0I/nCRHJA7Z9S78uWthihwm+qgeToV8JiyHicG8DWtO6vEQ2KgTCwQN",
        "HMFCdw7mUgBOhDPJEvx9yg89qjcahvk2lzsWl4vLhkukuRzQXPZKLo4QsV+pC+YhoYzPeVh3RI/fas+H10Xie4w6QaCJDTfzGFk2PL5+IHl0",
        "oR9ugi208UvIyzH7pM4SYfzyB+wxosfHwT5kTsJD6qvr4BGtOgkNOa0E3J2ievlxmjBGPe4mhwKeJECs5uW4zT5KUwhJiFzzWdN8KcbvwzT9",
        "4oHxnaf5ZnGP6xLmCh4brgsw/7Aevwl2zo8TQdWsLIB41J/QCfmg4vPmGPp4O03RV3setuL2atzd+BubbmCuPDD31A92lk37LmuHZjuoGfd3",
        "wMUzf2bhzufuB9Oz4gi3WnZ5PRQNfAFrzurxO2CncQ6EqKg6IruiK5AuzKMDDp2MeT2iLq/VfEH9hDpU7jnYzKeyo/j0PTJ8ruViF6SD6MNo",
        "RuYeCrBuVI/PICf76JpawuJppgmW6IwvqvIfjUngQB++Kuo4zfw6UsXv+0et92THM+ZKRi7jdhPWlPQYzzKKUpLQyIEw9agzIVgsibAQI7Y5",
        "Zj/VuG+vGNxZjUs1LsaJiJ0w8YXPw4ZrGvgHV0yMvpHHL8n0pjxkqDZuUPdYPm8w8guwultj/mhxuZG7oyL6gIWTolquzAmW2Dy+g3VeptGo",
        "N3JeU9x6jnBO4C9OiFFUczwZ15A2idJiGPSXQAQDliQ04TVGZ1iMd+iAJ6vwN8f9zxWjR+HjVh/avPnERMJEK2/vsdHpQ2AfyHktvEuZQtW4",
        "xwIaOjV0aS7vqo8Nnx3Fpxv5LOa0pkfqdBIFvsm7v2H+mB6/hzbN8B79UEpygw51wCGggSCJjhJpTLtxXTjoAFPLcMbgeL6OrK2m6VdPDC+v",
        "DS/hQPwwr8Hr6pPm+BrLvKIqJwghRDZ14UoriljujoK1NP1l1dSKW1bu29obyzpg7mULcC9l9btdnfCxTAjUnihggh2Hf5WBSolOsTkoO3UZ",
        "/vBDUq6wCR6zsiTckoO31lXd6LLqxuFVUzdK8PzuqvFZvufAccbBjqvbq809x5jSANVq0BkoclDSwub4WQKso2smji89RYNUvTZYA2tKR3Dc",
        "BwY4WM+H1B3BMHcnvWsmTr9tg2ffi9rLYH25Zs61D8/l1xrh2ThfDm/Bwtu3bvDG2/gyo2z7sgBrBvR4fw6zqYHLx7uF+/l6a99oxz2eU/gm",
        "7ufzmFUpQ21Omov3dYPZsfH0s5peFVHNWVcs3FdacJtPa+Pet3CPbpp8w1wL2tyrK0u3wQ02cnXEMeqtUIVkApmvlubwC1CpsI4UtN52aqz5",
        "DZNLs1tpum+zVRft+I54VIcY920tKGya+n+6oUFAK+DhJNQODloYM5fHUN5oFHMX68cAMsfOxEFRGBqKfPmFvwzm8wH6pStb7ftZO0Zg68nY",
        "qTV43QBe5/X4FPpMPc/cljHRjZP04okWotj+h8FcXqtHdpQu7bZ06ddN48ufgfOr24bzYhs971TaVLNzaWzL3PPrYBectrnUn+j7zvP6S/Pq",
        "sHiNbxlel+H5xlZrLbb73cjKs/tb5n3gmPKhdForJTpwcfT9sxS0nIK4x0NJ5EBjrAreYEserliczu38v5+qPGnqq+a3TR6+jDUInsuyTydi",
        "XpPcoC1zWd4/Bdg1y4NevV/2Wdw2nK5C7/eG5mW/y9l+gkrW4FPcMX3KsF2H1dsATKVYU9Anp6adoM5K0lMR41CacvHeSdQ7/TcW/vU2GsEr",
        "V+Bdx/jkOsy/nL1Pag5OBG2MKxMWyIRWNEl2aosTKh+0pEDjMpcIVoOuIQjkCSTDXPynyK0PergCcOkBTekFbvtlfcvucsl6r8l4Yx13A+h+",
        "7ff/VL2H4Rhj/ww+t3oqKW5ZazcwE/sCvIfBX6LDw8OtsVWQiJ36L8R/au4VO2mlfX3ANuNOJHvNven/EWzePCo3akFRPi9KlILmnWnzhXqt",
        "wuKSisTDJSr7MI/Jd9Ksy2nmWwTrkftkNeI/NTgy8A==",
    ),
    "transitions": (
        "eNp1Vc+LHEUUrt3szo5h0THuIQcPBSJucBxWyWGZSFCTQIQgAxlDkECs6a7ZbjLT3emqia4ETx6C5CDiIUePOXoW8ZxDDjnsHyAexD9AcMzO",
        "bvu96uqp6tnZhjf9pvvVe9/73o8uiqLYeYWxLVZdZ9kma7B11oSGa2WNreH2aFoUdH8N8lOTsekGnkEOGozN1hnrQV7A4Crk4AxjFyHhKvQV",
        "xnYhT3GOzv/6b1HA6SrFewSBq3lsuGBBFI9CCmvtn8K+b/VrkCv0nqdDriPJ0ww3oXkmlJKheZSlcaLbfJinY/7+JS4GSia6W1nHWsnRsAM/",
        "gM7GUiRxssf+MJjYCsfPF1OHT1t85y0+0gdCB9HdOGQexhs486HVyfcnZNPm8dAh4rHiKhI5UH6V5vcoAcGNr04dy2haYvkIP3+VWBqncSVU",
        "HEoPx8G0zlXfj56kmqeJQRTksY4DMQJvOuriDVda7Ek+kHtxoniac5mEikxzuciVflkU3/7ncD1cwEWxR0JLn58R7K9bfbeGK0jHUnEx1DK3",
        "JXpHUfA2TyeasqOKcfKXBPsEpYaFHRbF74cGyzrV6DfIkyU1kw/gKQlqmBjy+NLqN4kva8OHaQWlWxLS5vfkfvdm7+Mr19p4k0sBeIOyxMCf",
        "jaSOQew2Skpgc3l/IpVWFzo1rE9mRdGqYtvr9kvXd8+Rx/czl8tj4m0Jt4g49vN4Bh87Vic/n4mxrMajBMsxIDpCB+h4LE9w2GQtyJqJswk5",
        "Y2P942GLgCs/dHNx2+JqWVs6E2STOaY7sOVWf51mtvd5BUk+wDgu9hTDviEMDZvDj0eOh6+pX5bwEKVK+zy88GK+AbmO93Ue6vXYPi7rserV",
        "4+9Dl/MdYBjOXM7hkpwzrIEqfg+2F63+Nv3P00Aqxbdv9T69appqomT+nspEYFmgDqnzEM1c/D+92D8sia292M9nrpd7Zr5M3bdv9U8LfYln",
        "JSnYZNWe0jm9j4RZFRHwoP01BvPCiZ5pHbkddblwtfrllD1lYnq1eojzN6x+eaFnzV6gJUBnqv1NEIU/bNV+wpR2Fvt5a97PLRuzup4dOX6p",
        "28pZPMfehHUDXjZxYgub45x5Xub0M+S7JTkZnF5OvWO347rLckIu2A0Z8JsMiGfBk8l4IPMuH4ZCC7WfBG99cCKfpvHatL4fH/s5lN/mVwvX",
        "K/0lWLW6mygP6+zYzQrl2o8XsC5gYIWr9zderGxJXyp5fx4nhO2u1d8lTky2PE5s6dqkpnmIZxQdKOyHe6dzYj+c9fYDoT4/rxkzVbM1q+0n",
        "n4M0Kz/aK3bPNfG7Ztndshg37LeJmqpeg03IhrGtePgfdUP+yA==",
    ),
    "stages": (
        "eNp9lj1sHEUUx8f22T7CIRnLQhaiGCGKBI5TCgQoCRLgIBzJQo7kIIMMzt7t2Le6vZnL7qzPQVQoQhQpUlAglMIFBQVFyhQUKVKkokQUFBQp",
        "EFUKYp/jj+U/s7M3s3snVnrnt555M795Xztpmqb3nydkjqjnDKmRGTJNqtDwTFRIBX/uPE1T9XceQjH3FgYHzxGyCFmrEvJwlpAVyO0ZQv6d",
        "hg75FQYVyKUpQu5NEvJkgpB1yF2sodb6fD9NscH0IvRbkOsQLEVeIdnzAqQvOoxvNm9utkS3q3CM7Vvgec3oC5BPvC6jYovKtifxEzHPb6g1",
        "gES6zOMB3yYPDtJUnXGa2Gf1qWIgExQ/6+D5Tb9PTKo190o8NZdHBj5xeB7Czjf6mhKNkOEoGxpIGnqxvEi3REQ9TgMuWRQlPVnHJGZfmW/w",
        "6dnzF/REP2R0afXauZHz1PYz9vfx8+2+5f7acC8abhXHZihaHeZv8tgy78LmstHfUb7wIql8KAAU0ThkrNega4DbEklEexiNaZx0qRTUTyJP",
        "BoJjvUaBac9hevnAMv00JrY5UyA01pBrDnZto3/mcCV86KWgCadowjqFPzGoX2i/HWDAoxG7kbBYZhmBxMCIF9Mmk33GOL0Kv/p0qVHy58aB",
        "Zf/dYe+V/In0J1HCuQcIRZ5zP4LNu0Z/PecOuIJqtTWHiWzfC1ScdSao0DaKHI8dji8HluOXEgdKjyAErV5S9N8qbKTR/f/jiDzeoB80Y8aR",
        "hWHQYXqQs11JWyJMujyu0wCubbVBy3YwLaa+oFyo8R3kiJoeS2+bjeTmzwN7hlcP7RnujslNrCBZnFVUfoaFQ1tP12w9mXhuiTAUfeyTc16g",
        "sL5IUWwe/tXthUxlZ909bFaK1vOBHIn/oRN/h1mOYTYJtukyP4LNJaO/CflQ5Xc5FbW76ppA53/2j7jM8rfD8s2R7ZPfO/m4YHjUfm0RS7cf",
        "rT2zLHXIssgRgth4JK8cRZWh+GwnaI3GcnCc9c2K0ze/e2b75h3wzRyN9p85M3dK+RCOytmewHbF6O/Z2OrGzSjjfsFXiKrO0Cy4GagNcdlv",
        "9Mj67cej0f7j1rDTxIZst2ETGv0LyArj27KdA+n+s+OFWVvM7WM1jE6NLqP6SoAqSbgnZRQ0E6l7bt421VCIZOetm7pzFtn/dNg/PbbsGyV2",
        "pTfZdsCzsh+yLx/bb+JLKv/UnBH04p6rx3bPf05snqkYro/ZV4rNnsBa7r4PsAY1+ouQj0oRLJ9zOc3yacrJpz+ObT79BY6dU8tyT8VlTA1u",
        "RaKb0+QsKyfF3Cr4QNPgo0q1kc7/q/RjeoVepks6hia9TMmWuauouCpWznN70uH/4cTy74H97dTy3zd1W67ZTsALd4gq7NaNfkXfNaJOXbes",
        "OpqyzF6zGq0b0rP5Jw2jw37CevE5fbiEd7jo89FzzA3PUTP7q2fj1J6hgjtgVu/z+GZX8TaLuXPgX9R3wPxsu05+5mebznr6NnPO9vjU5sh8",
        "4b5mk6TIWNWzq8ZmUGDL7qRfpaPfaLfnxOzGcH8/td/mN9T+SbeJDxhyI7sf1JUqIp9lLTHoqh6N/KLni/cbAk+c0d7BPdj4Z3HoH6I9ZPyj",
        "udbH+Eb09GdDs9X0eE2fNJ9XMfFa02SNkl9qkFk9N6/b/wCxvLjx",
    ),
    "states": (
        "eNptk79uE0EQxsfJOT6FI7KQCxcgLQJBYyyKVKEAoZQRBaJIZ+58G/tke/fiW8vKC6AUeQjKlIiSmoKaikehiH18u577Y5OVvvXYt7PfzzNz",
        "eZ7n3zyiNtl1SAEdUJN8RFgNj/CIvFWe208f6iK43icKoOke0a8G0Sn01Z6DfuAsEptdxNfQmPMe02Y9hJZ6ItUguhoM9WxmbTi3c5fnz4sY",
        "+hDOpNAXwoxDg20uw7hv72hBMxmqRI1wdxvynEfAd9l1fGc5qCGw3YLpu/ve2OswV50pqDOZJKYa0y3yzjh+C31yGGI51pkUy3AiXy1SEclR",
        "qEAoRWZCI9+IMMqkMiK5EEqXp+IE+HX2P8z4DtvHVcVX1KzLfA+geDEPTaLVQGUl2ylyXnP8FDqTamTGm4oxikhKrpHs79TufFX5/675mx1/",
        "G+MvJs68VpufyDnm2PbtvT2zZd8Tel77YYOw078jqOU8ChaiR+iNj0lsoTdtzEIXv7jHbq5uoJS5OszYhJxljS9eV3wvIFRvmC56Yr5QKoym",
        "oIumejiR8SDRZdzf5fPdDT7fc7Ou5sqjzftxlFe1+8xcbebat/XESBVMf9dVz565eZI82idVlV5mm/Jldhq3ZybIq559qfnG9/hm8rL0TXG2",
        "x/ET9nVeJyIxsJOXxajodHdOCJ04ROYBIsH96Zb9Idch7o9jOb+nNzoduBerwe+bj93j6naYq8VclmC7B8F/M/IPijXmJA==",
    ),
    "waits": (
        "eNqVVz1sHEUUHif+2YQDrBAhFygaURBHXCyDQojOAhmIokixoigyYFDQZXw351vubnazPz5HihCFhVJQpIhQihQRSpEKIYQQBUVIRUmRiiqF",
        "CwoaEsc+x7GXb372ZvfuXLDS+N565+eb7733zZskSZLZcUIOk/Q5SApklIwQBxaeoWEyjB//SZLI3wm0+ZcJefgSIQtoay8SMol2s4D3FwhZ",
        "waC1A5gP7bKDfmP4Rbs/Ssg02uoIIR1MNIt2ez8h9/YR4qCdHSLkN8wt1zjyb5Jg4VGJ6S4apuniw1SkwoOIuYIMmf4F9PeNzSS+Oqd8mYso",
        "pIK1OI3w3mYNHlCvRjmr1PHmRtQT6ovPovoMrbFmyEuUCeqKiAdB7Ee0xa7SOlvmtMUjyuji1TBiosqDKYOjxZlwxRLx15Pkl6cK84jkZwVt",
        "weCeMLhBDal7TYwuV7xWq4v9D2Cnxn4F7bwEDJgSme4/lVvrzmaSFMzc8vlWcUWG5Bwd4Pj8scKxL8vdRNezXQyRWyVdDHMY0zT2F4q/gLMq",
        "ILCI1nmzqsA0vUqDtutckxY2OffpIl9iAtx5AeipxRFfUR+jzPi21+B2RD93c481/ln8efWJxX69x+8Sm4SgQtK8D6P/vLFPo31QrQY8DFP6",
        "ZPdSDpxrPB54FfQrUg6fp/9EeAjenCI9+F4HpxLbd5vWv4/Q7vdwe8DgKzdcUc1gvAeM140t42JO0qiYUaREbIkfDQ1jBpD8UHODMEqJzASq",
        "pBGRiU2V9J6KtKV/gnbIW0UKio9/dOHj9DWIyup7377+3tJxNGbwP3xi42gWe/2mY/d7Q+b/gFhqsjAqV1gccrvfW+DrlLEnTS6GmZiWYwbs",
        "qw/f9Wca36hZL1q3+B4B3xtbFp+M86974mVE6oSG1sV2Ajk6Z+z30D5N3ZDiqVmnWKKLSPxMhMjPlUY4NYDPcbNu+kw+tZhvgs+Npza+Uz5f",
        "M30hpURpVFnNX87m5z8Yd8LYR9HOZYCkoKXPjSmnOR77ed34OYPlqw2L40aPX6VtEVgMPsYsGPvcHhjy0UwNuQYOtJWKuLUIFUbGGRK/DD2R",
        "x3lpw+I8uG19fA3tUg9nMj5cEUZYTItqBi/d3FtXNb78up3nOt6GzdxrGRwXEIs/bVrOVgdoe4pDCmuK4e6mjbf30c5Aiip+XMrGXNtFUmu1",
        "EkscuRHEIk0M6VOJr113m3wqH2+rm1Y3z3cstoUBeRrwKzGmzsXUbMfyc8jk6aLSeNO7Z731zHrfP8+fdfMDtLrXHz92/p8/Tu3ofNqfyaeV",
        "jvXJGmLjzJbd9y2DYdz0leOyvphG37qxP7NnnEHgsyAqUew75vq0MyRAQJkoqnIBH/RRAq8UaYjqQse8uyRYs0jxSSlGry4Utyxvf+1Y3mSt",
        "c3sAb1IMs7xJXbls7IuGtzBPXEhrgdfKVjmArMscHL4ilS/BV6IZyhYVdORmFWjrdLrHzw4YdLCaY/Jrn8G2vmW5v4x9PHhmub82QHvV7Fn/",
        "o/9ZY5fkPrQUqI3oTeTKsenSXsLcg/fBto6rk4nl9teMrqWYRlUeMOiNxXR6O18/XFTflZtj0RBeW5So8FIBwznA8Ynn46NytdLkRRp5nsrg",
        "vnPMAYKUz3HDR/qc3bacDgOh1p5D0DcHb2PgfxyjJ1R+pnubxASFof64MWWH1T/k6J/G/l35Y9mtAKiKccD2Wn6TR64npC7nEp9OWr04NoMY",
        "ChpFKVtF4w05wPhlj+SA5aL09iBmvOIFVV6dge883+cocSK3xXGmCh7pmbvltvY4F1V7jrkIWOOJqT5eHbU7x+zx5vMsl/rOUtvpj9GsLsqs",
        "x8ERi8jytoAxp439rtR+9AnTGjHw2iX6ltpgS0aCmy0Y6gwxvIyYfvudk3ktq+3qGN3I4Lkz4AypxgGTLimL0Ob/Tl635rhYQtpmdGuKzhtL",
        "6QJL65cYkuDJ40SwxSbHnPRN7WheLbte/l301TNrO1a3ftjd+3yRNq4BrgKdib87u/nz5UPZJwc7v978rl3vSGLXqw7Q9ZBf6a7joG8xvTf2",
        "6ErqGeM9z+9ZU6qCozIP+SJr/My6FwZomufroihdexX9Dxt7zJyhXk/d5aCyc/Afc19T+5OMTHRznKgsNzmu1r434M4rk6FszjN9/yuo6HcM",
        "RxLDJ337V/fcSaYvXypumUpAVXZ4caQz9hiSuO7ivAhxaw5YU9MWqvtvWGcB7zsjCn17+g9VJfOM",
    ),
    "requests": (
        "eNqVWEuMHMUZLpv1MtkMjjErZQ+OU0SWYifDsCBErF3EawezkTZkMTZZAWLcM10707inq13d410jFFmRDz5YOftgWT6hHDgglEMUWcgHDhw4",
        "IAtFHFAURTlwMGZZP/Zhe5uvuqq7qnvGQYz87/47XdXf97+rnCRJcn6cEPzTnzFSJaNkB6lAw2fbCBnBr8vXkkT+3gf5/BFCFiCf7SbkKcjl",
        "h6HvImQPJP4ZITd34jnki4cIaUC+qBJyDPLlTwk5ArmCF9cg539CyCTk0wohb0E+eZCQecino1gHObeDkBWAhpCvHyDkIOTSduBvgw75G7hI",
        "TlfBDUS3SxvOQvCq3B68hrDAbQYRVuj10pYjWm9AXgpcyhdp3GV0qct9RgU70WdRPEVnapSL9AEzaxb9ftSlzmLM1CPXiZ26xAJ10mNO4AUd",
        "8lnKiWx7Hj/EN4ZfrPlNaH5wBwkFS98pSWYcj2HPM1qvFTkq/BZb5ILlBOj++cMvHZo7+trsgQEuC98YLlsWl/dKXGS805czt9k6Zfx1DXsa",
        "Wv8d5EhOIu46MY2YOMlc6F6UeW6aNij+ytn+OqKNeoHTNYvTX79NOe2QPC5DLpRiKPfxftzmPZZzOn09SbpafxOCh6HPYubWqNOKuGiB0f7W",
        "KSpONHtMdNiBGrj1I/mtXurxgAZc0mcBnvKQBXQ/zJGkY+G0GUgj6geKvBe+S5Kqziv5+ft1ZQfFj09gxxsrxpYzMo5D8rHdEbwfGv/OYV9N",
        "67+EzDtxNw+2J6KYtjwONmpfkc+Xq0mCskO9ms/st4bTAvisKv+Ojlu+tWMe8rDvO9IhhtN/sMfV+lHIC3BfmwsXDgwFb7Moooh0H3/ygGVk",
        "QTPKK0angkqPiEb9Noom2wxreFgv5ekIfHtxxXAt1wpaBXF6La/T5/2IGK7nVoq18gKNYhbSNu/7LnX8iKNYfB50aMypg5B3Ubia3UCtnAWH",
        "X31nasQtxU/6mYdNz7Xwq1g/qXWq64OHNeqlXkGRohTYstOO/VPSWwOY6yumFi5a2GdK9lcUNuwKYmLbjz1zWn8O8scwUpU5GIYaXfJkcmUr",
        "XM9Ni2DJ8WKKhkK9uJhf/7yRJNKmp1cNrw+HxMULmou+1+nGFq992LOs9XckL9vzUZY0LjvptZE7LF5CJaJxOGh1MzSlbzoKEkaVQmNaFjgL",
        "YuleU8oRdeDonhdFYF0v+vfPN5UNm5YNb2kb9mgbHpJ9mqUpnTs473+rar/UMfbIK/1eC4aAv94RFX12XeO9c8PghUP6ftqYNFqGtYA9B7V+",
        "APIiSkpWVO61dJNLvQDJbMW3XEviluJw/cagzXbcULID9n6FPfu0Pp5x8IIyXAHvvxrv7ZuD88WuHSYEFxbWLNbPan1Kzjn5PEsNE95pOjmF",
        "RA2YHX2ZuHnfL8V87qbpgasWpyOluFet2dFsh327rv6HfRNal76amT8q03Km7Ot/31a2v3HL4MwPq5Eo6mcguf23hmI0yhgvrimMj38AQ2dw",
        "AeOD4RivljHe1xh718wMOz0kb8aMLbzXMzjjt4t584rT06MhLWbBHHcgb85vqPk1Ys2vym0Tuwlw+ei2sXn5vn6NCz35EvY8r/XJtCdLeEUl",
        "Xe/a6TwNmjGaj0OPL3FxnIkBnhcsTs+u/7B/sk5i++eptR/vn39sKv88YPln/5rhchBcrq4Z/3TvmxNF/1xZMzPr0ZJ/9GAvHD/KufKBxeHw",
        "usH3h5x33CfbhfP3M+umx/3Grj908cdUdKBOUVd4J9Fn5TxQQ6JU45PrZm7+y+KwMITDiRKHK+smFj8f4KA8FpT6+iUL79DGYE+xe7v1PhN/",
        "7NmjdTlvZqYK7auAVd0wWB9t3P/+UMnzX1pn5f+GORM9Ls+Yjpqdrre4yASGqeA9K8LqNuNkA60+UKMZl2c3B3Mt66U75f1Bvq5pGGV8JjfN",
        "GXev9J8a5lN5MapppkJeivPEpsH/2MI/PfQcgoNOrJyR979NM2OmIb8HarrMnqNRG9eevs9EPmHSk1L+dTp9in750OL1+p3BM6Mdow6LcRUp",
        "xqhxx/jkF5CXpwontiUHhxrf521nSH7U7hjsqxb2uSHYWTbb2FfumDvwy5BXp4r1nqKrRjCdHgwVMzxEw3JoFPpeXEu/5MLreIHjqy5hc/zc",
        "4ijumZ55werjWY1KHmKpVeDo3i2e6w/5Tic9iLT846EjIkZROshbnGpZvVOnf3qtRg/JH4f/MNBHK0Cq4E0SU/bT7VY/Xb5retlZ8Ny7Zbh+",
        "pe+kZa7HvcC1ue7CvtNaP5GeJR1cRZeEF7Maii5qOyL7u/kuE1wexdOrcY2+i8RqwrUstvUmQq//XvQCL18o76labfs8wtvTC019wN5dub1V",
        "zVN+3HvG1hh27twyuXNsyBwLRDNi7ZgLq5bv3jPn4d2yt7Cgg1JBYPTSUv3KDiy5jOr70V+2/v+8UG8xeP6WmRe/zXuHWkWRpqqF5HUrs9VR",
        "zi3m41iizgSS9R6gjuJpFX4ah8W70+9VzJetmW7HvMujwr1rJCneC2a5Kg9zq6mXYlJJV1f0npUtE4sRov6f7WJifDOnOezSHOQZAO/N8c9g",
        "7bjWJU5jCKb06Jjle2n7RG47Sa3Xtg+9c45l9yLZ1V1lezVdU00tkWuzGn0svxvV1Hx5oiaTQv6vQXqk16MmDJkjnCAd5yX/VCEPpu/M+sb3",
        "rGXS+g==",
    ),
    "bios": (
        "eNqNlj1sHEUUx8eOPy5wRAZFyAILjRASLk4WoIjCduEYyxjJGAch5MLisrc3dzfK3ex6djcXRylcuKBIESFKRIEQVURFgRBFCpcuUlBECFFR",
        "pKBAKP6+ePOf2dmbvdsL4qTne+d9M++3b97HxHEcPy4ScpmknxdIkYyRUVKAhs/QCBnB14ODOFbfr0KuwH73RUIo5GcYrUA2LxKyV8A+EH+c",
        "kM4YIQ3Iw1FC1iH7WLwAeXCBkGnI3WFC/h6CDWQPe6q9Tw/jGA5HJ6Hfh9yFYLsuG7Yjbl16kQ8rs2b6SRyvG30R8oF+Tr0aDRsMIplTnaM1",
        "T1KHtiUPWfrId+qMuo7bYKXsv4IZQoBPWswRXNThfwIyojnw2mTYsGw+UaxkiKrYgPtf/XtoTLHeM9yT3YgiJp4fNZ2Qe8Ky/4U1G0b/CHKV",
        "SuZ6ssqq1Jeey4KAbkUswk9FV+EeSGWq04DJmyygQeQ28G5mwdsB9Xy8Qs87XD+K468ONN+w4mv08Sm94oRuo8yr+sgN0y7WvGN09Z6LykYh",
        "BNvCBYcTUq8tgpRIue3xu3OQxGgBf145tP6/ND6p8f8yJGBu6Mmy64gqrzohCzIcRaxdMfoc5BM/oFzQWpPXG0AQCiBgNNkimKUtT6qjdwSe",
        "McoD6rQqvB55EQ43y7eGuCiGHzNsO4ZtyrCpM/f8cmW7zG6FTITZ+HyPdUtGvwL5DHHwfFrZ1hFJ7KmMmmw2ZVOZ5tCW4/s41BpvslzMfjq0",
        "MVs+slx3nsuVbJ3lmse6BaO/l+NK7A2XQ6XTplV2k7sMuWMw+2pg5cgy/Z5hqj6XKam7LNNDrJs2+ms5psReM/X53sv4/vzY+vb7esNo4lsn",
        "cOpzCfbzRp+xPnOJW0ox2lwop4M4Vo8tx5/H+VpKY/CSymW/ycNyTXqtXp7fsK5k9KmUR/I6F05Tl7TODr06lxf7Gf9fnOTPIK3liyo2jkTm",
        "9fpeP/k/viVDbuZ8r5xY3992bI/ehVzvOwe1v+u1Wtmz38f6t4yu7NaclmnDOIjk6HM+C7BM++6E2Sv9PDqxvXcePOLUxuOW4ZkwthdUPBCJ",
        "lGXj1PaSWRUX02h7ceaoUwlU9XIzR6TjMlr10G+FByPWbPblR/PUMp1neDYG8IQZnsenti5e1+eiK0Gz9Db/3t71R8afOMv31mxvbzFZZ2UR",
        "ZM/k+pmdm1chH6u+vjxLQ97qjki9Dp029HRqACcIu5Fp87DhRaFqZ8qsf+bcObM5c6lj+b4ewFdnodzq4yNYs2n0NciHKRQioYZcW+SIeNeA",
        "tp0gwaoafJxag8l0Sd/ZTXcs6y+d/56T+kz6WO937Jx8E3Kti1Qz81rCaW91Z/0vPbX+MSlRnwXcdcbRTydQBZP4j/ama+4R5NcBNXeDi55+",
        "u4A9d4y+BVFZVUpuQCVa5YHryPR3+TaTyOwSBmoUNEr0NqZmGcQszOplp9k0v2tc8K6h5zNhVLfpBeo2pUI9k6vngqYpGKZvntr8HSHJHfP9",
        "83zdZO9QQpphF2Tuf+fJDB/RkSNklYl62FDXg8GzbDFO7L/L+FofcM9Mp2rq5x7sp4yuevwylzjSxKr/XX+Ik/k7FlsfqwP6AMZud/9/sP9l",
        "o6u9lvRI7q15RaZ64pi5O9Xi/L0lGy+T7XoQdPtfbO8GKmc/TWyShoOkkNx2nGxlReKGQNEN6NOXIOPadzaHJ7s5THQWmxweOLvV+8Bdl7Oo",
        "nxd1tii7dG69oXpB1KowiVzFdKXvltRBqxuzVNV1LXd3L+bYngHnXPAN",
    ),
    "links": (
        "eNptVDtvE0EQ3gTHMeiEosiFixQjGoKwLEpkoxDR0KRCLigiob279d2R867ZXechUVDwAyKqFBQUiIqfkIKCgpIyouJ3kMcyu7fnOzteaW7n",
        "9ubxfTOzZ4wx201CNohd90hAmmSNtFDDtdIgDdyOL42x+12U0zVCApQzPPh+h5Cfq4T8XiFkF+Uzfrd23/4Zg87NNuofUVooHVIsG4OOwyyZ",
        "iqmyKbzPGfrsef05yjBlEGYCIjHNY6C5EhCyXPAEtADKhU6ZBDHpgpD1E8neTZnSPbKOMcaM8ownZOvKmP5lhenUY2p7TEifqJRKFld4ttF+",
        "3+t7NTwOiWLykCkoQag+iBFQCKmOUofIvaoTHoFOqUYSh0wqdMON5j2bs47vHPH9KfCtWkzHC/iw3CQ80axer19o/8zrNuAL+93mRUwICTLu",
        "NIQ8ABoqxjVkI5jyAy6OeG8+v61ACyPZOuyi7Nw4LGu2Z39Rzhd6aGcjEnyUxYxHrMK0jzzee12gpFmS9hGGZBRbyGOY5DRiJciYago0kYwN",
        "YMzibDrGMnIGcpqzoogyZnIAuTjqw2xkuoBF5FrhsdJdGNMJRCnlCYvne97C6llOFred7VVSrYsry4+sAD6eIteeqfj+IMUcWz/w9tbfD9Yb",
        "dliyrngPr40Zev0lyitkACM7mEUHHqpyLvswERnXTDqCikUat+0Yg0bIuXjvFsQfLfLZmPEJfG67vl5XXGwHG+50k2yhZRMjBOjXxs5tuvOC",
        "48WSnlp9GbcnN1VPc89NzcjlGT/owlvkxGIIT+Bx2e6KDDvW2K8uTGiCFN0VGeCLxMO+iyFdxHJyZZZknOa2bLfuScuhbPgnIV9u6tyLf9UD",
        "U92j10vmtuxjVrvrbfQBr29Wd71q28J96Zgir70rn2r5hkv+KxhnLtcHtO94vVXlWsL1Psq6sylzWXSdWV+J66zv6xzf+n9DTFx6lz9w3wNX",
        "wdKu4fMO3W9jceaCWxj+A+wrVRQ=",
    ),
    "deferred": (
        "eNp1Vc9rE0EUnrZJGmvUWgoGrDCoaA+hCHrQnopW8CCCkEMPQrvJTrIr2d2YnbQVguQg0kMP4lnEg3+ARw/+AR48iH9BDx48iIgH6Y806zez",
        "s5nJJl14u2+z8+b75r3vvURRFDl5QuZJcs2QAsmRLMnDwzWRIRk81g6iSDzPwT5OE1KCfcoRsgjrZgn5hY8dWB7WmCJkf5IQG/ZlgpAi7APi",
        "RPy7/SjCpjmBtwsDNCkq5FMwy6u49XbQDgW0inmNmLLy78PKDqNNq85oNWg3bFphjcCvUx5Qyw+4w1q05jZYiQYtijdacQPzW4s9a7OQL2Ef",
        "HIF4zPJdv04WDqNo+UBz21DckrzgmCR0rBazNa9FrC8p/5LiJdCsRhhQxwppjFh5zlmYxtsF3rUjiZcV538L66TyIfJfDfyaazO/yjTue+Cu",
        "Kv+W3NN22548cCPYWqaDHJYo22Q+D/FzyEvUs5q06lh+ndmCzhCfvX4UFfA+pbA/y1yQCYrbbfD8bnDdgTkprsJnmwlTzfUhznlD+Vdgom7L",
        "si4NK+R0q+VypCioUWZVHVnVpSFe21HMa1LhlA81r2/g9LSneXXH1C0jc+h5Jqc97HFV+WLdI8tjggJ3LI5bi1mj+cmTWVhG7l1Qe4nrh8Fn",
        "A1xexHmaFPuuKS6zaq3ILXftAQ8HaxeVf1HqR0DHNCDSNrMTAQ/nZO1IY/428LqpmpyOz95sMM7W/VCfHzEPlH8Hdk8c3oVMVG/E9bEtblEX",
        "IvbjV1S3ymitFXgUqkbC/LSm/yheK7i96o3mwdSKG4ZtScqoyzZiqPLPw1ZTvNJ4Gz2N98/AK4/Bk/lM4f1EzILyz8AexyJQGR/G+mpgVY41",
        "1vaYnhWi5syXaAlWGTEryr8p3l1obsthcXKDJjoh4Ey+iCYIxcjigzmH3kj1xZNjzeevwaeT0n9W8BUDyNS/wUX05l3x3Tj79TDhEDeEwU80",
        "7UhviOk4g93EjFyRqHNkASxyWFWA+ueRnTn5e9ynnRP6VIxtsz47fd2nF9R8jUe7VKFQBkbaUqpP8zIir+Je9nWvZEj8X3Y5Olmbon5Kbuuu",
        "MevnI63NOT3rr5viNHn0+ro+b6JRbZr/K9hnCKuL9UXl5zXWmJl0FjYt1yRYgl1xkHsis69yL/H5GH0ETQkv8Qvye0FmMK/0kczucqwEqYqB",
        "XMNEsLE0hvkVRvj9B8WByoo=",
    ),
    "batches": (
        "eNptlL9v00AUxy8lbSwUIKoyZOjwmACpijpWZKmKxAAIEOrAgBRs30tj6twF+9LAf8HQkQGhjhXqwMSM+KeAmO+dL3FiYenpns/v3fu8H+ei",
        "KAraFqIj7HNTtMWO2BYBNDyNpmhi+f67KOwaQD5AubwhRBtyuSXEHkQ2hLjGN2vzA7Zw3OpCv/A+e6J8bkMkx2mYsRzGeqYMLL3fFfxee/0J",
        "5PlsEnFGekQTtlpOiSIzZopTnSfqlPiclRlQGOVYKRm5j26TpOaclDZkOE37QrRw3oRDBTfxdYF88R79qTg/1zhvQTJ+P+PcLDFXnCfwe+v1",
        "l5DjVMdn5K1zy2s5otDE43s5zXV2NqCRziik/KOKH1aWZhwC27pMaR4mhqW169v467yvipJ392/F+6XG23b2tkor3BVvE35vvP7CytSHfqcT",
        "xXITrsTZp1BJl4aG8Xysc6Z5BkL0wFCszzmzsEmWm/4Gq8DsBIi0A80y/1pjTj1z1zNbG1ZyqPKK9Rr2h15/AHmEVlvEzR6bLIzRaSUBETHw",
        "uV+r2U8XVzSO7CwtKoZnnqHnGawe8WmiHEXFcQifrtdbrmaMUm3men9Rxfi2FmPsz+34GLgmwiRydfYFbA+8ftfO0zjjUJYtsdNSjkE1RPXc",
        "AtyiADtBeXyD3LKLWQhQ0xZmoYMa97DjPm/bXK8gn2r1x5UX+RSVXMv7ALN24vXHkKcJ5mB9opd3cKIlpwM/NBGbObMiV0k3Oly6lVPVr/MH",
        "LkLg40yLso7k3nfcns2nt8pHuIx8Pq7G8n99tHzDRC772Hb7bRdpeVfs2XdW/5Z9GmV6Qgf9Gl97o75HPsY/zokX/Q==",
    ),
    "members": (
        "eNplULsOwjAMvEKhBVUIoQ6MmRg78QF8AgM7z0CLoK2gEisfwMy38Hfl4gSpQCRbZ+V8Z7uu6/rlAUOY10eELjoIifg8nzVYhcy+y0CbEbHn",
        "4eoRNUhuxcQn4QNj2NdjHIss17tlfjWSrgfsmTo8YSyys1bFXlWpViX5lbql+qKlLkplJRIgIPes13mWHxCLL7wZ07Mxw9zNELsZOoyiXGa7",
        "hv+d/Nhho7kQn+RLP8SAEYjWx4fbcreQVwrkNkO6jOy3eK9+9jd4s662qbUXf3vTSC764fpyfTuH8H92Nfz/WYA3fLU/PA==",
    ),
    "messages": (
        "eNptU7Fu1EAQnTvuLga5OJ1SXBGJbUBBHAdFhFJQUFAABUoRUUXinPMkXiW3Pnk3kSJRUFCkpOADUiDER/AJfAKfQs682VvHjmGlZ493Z3be",
        "vrcuy7J81iPapGrco5gG1KcIEUanR1imb3/KUt4bwOUdot9doh3gqkMUAZeYl/XvyENRV/bLgAgYhp1RRk6n1Am5X5C7G+LHwH5WcJJOlDlb",
        "HHLBqTrVJ6xmKJmp/Ei5IjFWO50bO/U8FpwYbY7pyvekzks8Hl7X/dP/9F82+g+RuxPiB8Bekc/ZWrX9fu/NK3WUF+rMcvHELpM5Kz5n4+yj",
        "adCg6r11ve6t8Hi78r37Y8SfgYPQv9JW+mS5dV7W8P0V9SrEI+A11v1hM1bLXBs3vd0vwm4RsqtzdakePxpcerT27fmq1uNj4DMO+RLrFMfS",
        "7qLJaRs1L0L8VDglNqs4LSBQcszqhC8mfsImC1aJU4e5yxSbtOUN4S4J3wEi8ceUtUafgFmL013xTRc8F58bnH6uap3k3BatFBxCJutzFlta",
        "Og1vdIrDPjJ+rWqNDjyXEW0ha4DqGDWbYDLymbWPWcvHvtwj8abBT/aahPg+8E5kafqotFkLmKd8Om1xjXxlFOqXZdPHgZ8TnuMbnuSZBp63",
        "7nqTo7MfjA0cY78e+y6S17xz+7rF9Z87FwMbvq76z/4CBNS/PA==",
    ),
    "tcp": (
        "eNp1VD2P00AQnRxJziALhSNFCpBWCInmdKK47ij4KigQXHElEjjx5mydYxt7jw+JCiEKRIkQBQUVv4CSggIhfgYlFfWJu2R5u17bayesNMnY",
        "np33ZvbNSinlUY9oQGqdIZf61CMHHlanS138DY+l7OqvRCPECjx8O0XEYB/X8BKWdoh+wU1hKvYS9iDB2hD+LsyhEoMI20iEPnVMrItYZvzz",
        "sL0g457PkikTAWcTL4q2aB3vZ9yLw3iffv5VualzHT9vLJy9FTiphSMQe9n4mleWTHieN4GwbKzt4wJL8Xt/orF6I/gvYA8M3tDgqbxBkgvd",
        "OvP826rtHOwOvrcBbTwH7B1Eq7yuqUGtrxaP73MpX57UdT9r8cAR0fi54LnFI0X8beNvw+4dzsY8U0wyPuHhE+4zvWWHeeOcx4JNk4x5miIT",
        "CcMrf6k3fxZFbWfnNZdXhsvIcFF+muShCJPY7gthz13jX1Nnd2v3Sg6Yx4c8nnAWV/RUo6Zhhq4pfpsMEV7EPDwmImCglS/xei0LXp8tXlGr",
        "R31YnkwOuKg5vUP81VK/WoecHfAs5hGoNRkVW7eauCqrOjuVW2nzx6LWy1uYv0IvKeeZ3ZfRosnhhu9nSqNe7LM0ySrtoHiwKU7F5hCg9kEx",
        "ktU6mtfa6VIx02PZ5Bas0FCU4Pgtbl/AbdP4F//LLcwNrZauh5WuByZnuT4san6+5rVBFxDZRwYX0UOoaUNH1rP3qKWz02pvCC0boZWcA1nP",
        "n8JVQmaQtlH9knYcnbVrfjEr0u5dv9Au2IwqfqQZGn5aa59W9FLkD+NyHl393dUojrlHVN77sJscg8er64E9zUJMZWsKVKM9DMv+DJO6w3RJ",
        "9ZWi5rUqr1mbC1vXmOX9+Q+AZTCd",
    ),
    "fates": (
        "eNptUbFOwzAQvZQktVAGqBg6MHhkQK1YEUMnxk4dWUzqQqXEkWqXiU9g4BP4HL4K8+7iQomw9HIn++69d5cYY9Qjogs6nFOqqKSCFDKcLKcc",
        "4forRo4nwCojekOcSv0EUaFjjD6iMzBN5D4bMecDoOiXvwDqbu8CVwDM+QlunfJzYLlvH+1OdxttX6wLfoa7MdBa47buCVkJzhxfogXXYwaw",
        "FeznA3gdaDLvxgRLR5p36Fmk/Aa4xzsrhmebVG+1t1avu9rPty7YnTONnzed99bP2vXQk8Lk7Il1q6TDZyXeKOvnK0WPd3b5szPe2PSwM5nh",
        "HWj+2Zv4StyVvFeiyHVXaRbuX5r27yy6boyXNQ48K+lSR3wKFaqXTJ77//8NRKdMHg==",
    ),
    "losses": (
        "eNplUjFOw0AQ3EROckIuAkoRJCSuTGGFnooXRBSUCGTsS3RSfCedHSR+QEHBEygpKSh4Ae/gI3DM2uc4SlYa3+i8szvetffev/eJxsRxRDEN",
        "aUACDNGLKMLx9us9n4yfHtEMeAGf1poTnAKqEbRcZ4KbWtyf4HkLCGBCTQyAzG5MxRmh5tWf9zLwY2CxKR6Uk3Yp17YsVTnH3QgoVGq0WYEN",
        "UTPCE1rgG3pUG7CfZyDf68l51umVNl3PT2hmgZ8CTmXW5agurZOgTq3TSluz31ugKvcW1MysT1181T6ox9/yAX7nO1+vwDr4moZ85qV6VE5X",
        "T7Qzj2voksDPAW2WNpHGVjpTiczTKr3nwSRSOWfdfM/feOsvDjU5bnznjScXhd2dbXfHm5u2uzvw3M6Sddy89RvX7+O6I+ftznSRFupSlkrJ",
        "3GblRVhmkR/OVNQqsVNPIEM0LYPn5l/8Bxy2aAw=",
    ),
    "discarded": (
        "eNqNUj1PAkEQnSOAG0MMIRSWW1BAQkhMLEhsjB+9Bday3C1wAebM7YIWFvwEf5Y/wtLa0tjo+fZuCQYs3MtsZm/ezHszu1mWZZ8lojq5dUg1",
        "qlKFBDysoIwz4SSwl/1OiBP1kfMcEDVha////SvLkFRtwp/meYhTsQ5g9yqcaWso8PhX4E+934INplqGyZKtjI1MxtLju5ITK/VKszW9Ta2F",
        "VhzzhF5QY/yd85Yc19MOr9Oa13TteK4B8OfeP4FdxSZUaaQjTyLbSboh75xJNTLaaRrLJc84eeDejgbCzASqVeG5uh+/9Ax39DiM5uiOzVbP",
        "G/At7zvcNUeufYtxxGx1ulLzvb4FbkbgjyjKBo6Xsy3vo+c99rzOH+lJzDnzlnuInL73O7ALh9ll/8cMBB3t6SFqgF+g54P8HdXRXaMIV5zG",
        "9R+zMTbValHoK95eLX95ws92c2furUTKKlkkyHY4Vcx6LhWGd3lz2+lKXKJrAmGT7Okt5x/RD+oikAc=",
    ),
    # [[[end]]]
}
