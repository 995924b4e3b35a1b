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
        "eNqFV89v3EQUnrb5BQ1tFAURQSkDKmqCtqGgIlALUtVfFFSVqgooB9SN155N3Ozaxp5NCIpQTyhCFaeo6iGqcuipQogDQgj1xKkH/ogeeuDA",
        "IU3SND82Md+Mx56xdyNWebsv65n5vnnzvTdv4ziO/+gjBH94vUh6SRfpJD3w8NrXQTrwMbQcx+LzDVgHBl47TMjSIUJKsMWX8Bw230vI44N4",
        "BnuIyWdhj14gZAy23EPIHKwXNt5NyD9d+B72qBO4sAUsTmELBwgZhC3tx5qwW/sIaQJzTuDCfgQPkNo/AP9rGJYjgyR5AYZU2ITrle2gIair",
        "OXOYc0z5r8DOX/uS+lXKJxmVw2ngux4fIaBF6szyXG+CTEocsu8s3nYNTKeAKWLU8KY8f8Yre5HGXMackvJFzK5ZIaeAirg1wSIBP+V6DlVT",
        "89hPDOzvnmrsSYV9RGEfltgW56FbaXDmCAIpfvC0DT5QaxZnnj2LoYKN5yeE8vjOU43/YEXid4r9LsB4m/17fjlk3zRYxI39Y42PlS94XGdW",
        "5Hu06ocCtFLz7SmqJp2mjm9H79b8KGLRSN0ZEeuafMbX4hjSgiqTV8dKwo/i7d/VOL63omM0rvgNqLFiTsRs7oea2+0VHZujsEtuGHGajEqF",
        "UZXfVVx/JM/lwU4ci7j0r7Zi9inMA0InbDrDawLvpPLfgl1g067NCkhmRAqYR3fjWOz1h9W9dXhQaN/i9mTZ9hsez7C/Xc3r4JwYAwEOTYR+",
        "I6C2X6+7PBqmN5ECzMnr4I7C3TVweUGDSHuiWCtkHec1zPtI+cMC29xjlO7fD6iFTAALWknIjRTO/2is9r+2d+4LHQptpySy/a/p3H9Z5IFI",
        "9YhaVc5CCc88p4j3k8JbX2uNN1V44qx5aHmRy13fy7au9Y+5R5R/SOMGFkTuFM5XqLQHI7vU+t4zjbtYiLfIgxrzJvhkuTLLWWRiOpg3rvzr",
        "sCtyXBpnx+LWGZmAlieCXrccqUFoPEpqIZzjJZSkGosiGvl1RmdYyHBglkOtSbwXeN9+puvEW+t7a0Rw9qvViPFWzoPrWiPvwL6Q40zOJeom",
        "/9R9h9WoZ9UhX7eYI4PrmssvCZeuAXVvmPWgW9bMKKi5OkcWMf6y8s/ALk4zcVYuDhchshAC1CaUKSspltSN6Lgq3HSIJYPFiOHxfP7Mb8Tx",
        "6eeai9OGC7egC+ZkXIae61rxJmw0u6T8TK/UxglWElZF7TaBeWND1+y7Igfa1MRQ1mN9DkvAvaD8D2GfVVGnuagPQY1xdhr/lQFdolNsFtW+",
        "ARWXBJeoXGHQFCtLkvn9D24ldbtT4T58ruv2/c04/mpDx6aYz8JPwU29XN7I3+WjKiTyCqczFoTLWIFHH3j8taH1ObZH7UjuRY3120ZSB4Tf",
        "DwOOuDdPJAcCt6DBxQ2twfc3Nd6VNvFP1tJYFOMHlS/4XEz3VKwVmxrjjoEx2iZ+KU0zfvObui6JszlnNkAFLdUMrP1brbXX1LHYD3e1jpcx",
        "dyjNcXlOsoyovGbG7vKYjw3M6a3WO7a11xOoen+TWxr31RbcXLuXwx3b0rj3tnX+3Nqjp7Dl/alxH2/l79nzyf2qcHnCIiOc1+fZnSRPOtT6",
        "T7Z0nvzdjOPvt1vrmandwA8a0K9r5nOwrfP5A5UnQejborSjfoXM9kOHOXRI0BNdgCWS+8SJwJUf4pvhYm0ZA88/m+37QVMLwJkIrbruf7aT",
        "nkn474m7MHmeBielZXF9RrLopySLPILdJF4HFOZAU8erCY43djTH20bfnHLsSGpL3cyLpaY+v9dhV3HN7H16eT49WFnc32kPuJ/o168Gt7vg",
        "/flOax0y+8bAyKFTO1rLryVxk4H6v98ux3Y05s1dHYu5Nrkrc8aPcr3Lzzv5uncZz7NYhJbNRor778v236vWIWqdlMcCeqpListePTOulozD",
        "yd18jz6adcoYVaKizgdg8sm0VWsU+XSQ5Dfr7wbefJsc9is30fPrfd/H+FHlf6owrQCtgi2T63gkm4+sb5WzzyQStpI+Cx3CbMRZHTd0rYbx",
        "VbdW+G01GgtO/eiNesChG/HqA6dBGWdTs0GBr7hD7Rq6R+OcxFqnlP+2qDniufhZl3VLMlAzocuZaB/CpIUrnF2PXKFHrTMe6zMTHWlSk/rB",
        "MOVLJGPFN9fvmVz9oJzV5V75vFeiiHHmb6GrjXqFhSVaDf06PVmistFxmPwdplqKAt9eWLdcJ63X/wHwQM3p",
    ),
    "transitions": (
        "eNp1Vb9PFEEUHhCOCyGKSMwVmkxC4REvRI2FQQsVTLAhl4AJsYG52zluA7e77gygxsLCksLCwoKC0oLaWFj5FxhjZSwsjLGyslA4GL+ZnbuZ",
        "++Hm3t3L7Zv3vve9H6OUUi/zhEyS1jNKxkiODJM8NDwDQ2QIP8W/SunfM5DfI4SsQH7mCLkFkcOEfMfL55Dfpwh5Afk+CJ+QvQGchezhnD7/",
        "8I9ScDqo4z2DIHQ7NtyQaj3cDHRYa78A+wWr34TM6fdU1pmkCROCa53TJA4jWaK1NG7QqzcpqwgeyVnzKk5oKAXfrM0QQCYNzqIwWifS4CAD",
        "FF+/PEyJxVSwmLReYbJaXw0D4uH6hjM3rF6E3NU2JRrWEDQUFB9GzblLgoo6SwF0J043ZrQPH0fT4riNr+2/BkdO41jrww0TYcA9DAHsS1a/",
        "CFmMqZBsndMKXw8jQeOU8igQtM5TPtMV9+uhUj+8eEFXPO1zk0nu5/wZ9lesPgVZbjFPq3GDI+Oa5KklHWkjdifn5SOlck0Tc1jz+x7yug/f",
        "fBt5RtWO2GXgXbP6ku6LeKddXkE3ongnms3yLtEN/mR2qXxn7l4JJilnQSkrRUnjTDa5DOOIFuOabgya8kdbXEgx3Yn1G3CO23it582h65kL",
        "eP/Jy2VX89WHQ0Rs+HkUjhyH2s8iayCJmsklA0vR2qaHZNjgPf2SJ+OQIRNnDHLKxpo/ctjeAdeHI9fTKxbXuLXVZ6rJVhvTAWyp1c/qGSs/",
        "aEHi2xik7t4h2A8aQ87m8OXY8fBY90UfHuqxkD4PtOlinjP1FLKTh856JCdZPQa9etxoupwPgOFt0+W80CfnBCPcir8P24LVtV05jatciB6+",
        "97wY54+df9nHv/T8E9jOW/26mRVT22KSJYdtku0KZJuyKqd1JmgUo+7ROtpYYpCme7AUj92uWFSO833Le/e+MMXzOH+F87esrp3fR/sbm9bG",
        "1JCYPyRmfWRjNtPdh5PtPhy3MVrPx2PHme6SbIYmyAVY5+BlDCcmMfET5v8sh9f/uQ/MfvFyWEEf3Lb6NX8HIQfMcgLcBrnmk9Foq1Hh6Syt",
        "BUwy8SSqTl3rySNvvOWtz90TH3t2951Wru7LfTBKsRoJD2PzxPW2znE5dDNusHZhIMrV9anqvYv8HhP8kdv/yt1Bl3VPmGxpGNmS2QvxSkn/",
        "FacB3mkUZq10z/OoN88adaFdK2KqZWvVsU98DuIkuyAH7F7K43vIsjtpMY7Yeulm6qzBGGTE2LZ4+AdAtsSI",
    ),
    "stages": (
        "eNp9lr9vHEUUx8f2OTbhkCzLilxE4hUIHHFcXCAUOSmSmB+OhEKMHMmFJXvvds63uruZy+6sz0EUCEWIgiKioqBI4SIFFaLkD6CgQAghhCgo",
        "KChSRIgkZ/vs5Tuzszd7P8JKb+/t7cx7n3nz3ptNkiShFxmbY/o6y4rsDJtms9BwTRRYAT9LT5NE/85DPseLRy8wtgO5N8vYbzOMbUL+PMPY",
        "m5CH04wVIPcw4acpxs5DDiYZezyBOZAD2NC2/oFNOJhehP4FpA6BOXaepddLkI5scLFdubtdla2WxrFzf3ySJK9YfQFy02txkjVSdU/hFnLP",
        "L2sbwGIt7olA7ML2AqRgfOi1TjN3PX6iWdgE4dYFl0jZJrXtB0NcxTyXCnyW4/Ixz7f6bciGQUnJODW9SFHHa/A34vZlCgR5AnfFwzBuq5IZ",
        "0n/kvl0HLS2vmIF+k9PqrdsXykPr+uZpyn4Vt1efOW5luRctt97PSlNWG9zfFpFjXsScK1a/CPkAHCFFTc7bZdoAU03GIbW9UEUUxS1Skvw4",
        "9FQgBeyUB1guPXMs3+ZYvhqztxlLIA1On+ch5m1Z/aaOo+gHJaggBoasRNIyUqce4F+PQn4n5giwDbbEGy+iClcdzgWtI4Y+rZYHY/d3jrfS",
        "dbxbQ7FDebAwFsIDgKbNWDe6g3l4Q+9voDevBj5P79dIHm51nc9fu6MxynyivBhCXG3Hg/H5AXN2rH7L5BjPUiX0hNmyiFNVNuOWiMgLEZtK",
        "xIWioEZRtQ42vofHiHxJQiqM3MN+65BFytvlI7zFQ8f72eHzeXV+wYLiUVoVGe/+oeNdH6mJjLPCm7KzQph5mVDDHl602k2usyytDLtEU+G5",
        "GAdquB6+z/G+deR4/TG8Nme287xLmFOy+suQ6zpP89nlkUndLFwD+X/kfP987PrbfUjb+l+w/rX9uoxUvn8cHLla1AxrMkvoILIRMJlvg5dy",
        "+HwvqI7u2ye9JClaW/r65cj1uD/A9uGxi03GNmfHTun+gaBkXFcw9qrVl90emmbLiQu9aWmSmb1LudwOjrDtHLs4/Z7juD+m7nLNxvV/zNm0",
        "+pqpu4iaXOyqepmuCdT+a1G/SUWm8mPhKRUGlViZ9pd1skBPRM6K6l3TzIbPjJ7j/LT3/P6g9QrfDURaqn1O1XP94ZzOJT0m2z3T1va85lBP",
        "+jjn89ypy6Em5P0xfpXcbkvYyvt9BBsLVtfyjhg9Dx+cpvkxZW3923P50TtJki9zvnWt74+pn1ooW5n3zHf9ZDBXzJpxhJEZZ9J3nd6jG/Q2",
        "rebLyVbYCOdaknJOWr9fnzjOAzCuJI7zu1wO5eusEYiBc7qIeRtWf9ec52GjZNpKiQRODPOY1lXJ4i1lJwne9hsAb0cXSsithpAdUR7+3pjr",
        "f28UrW99bZ06/gK+tdL6nMfZOIunGYydA/ui+dbK1rWfy7lsXdNpv93luXX9Bdtk9fmB7yLX3QcZZ83oWTunO8CWfvt9lPx/n4j4Hff9g7GX",
        "rP669h+3KjhckPPpkVwinTG0XNJ/ydDnaSsLWkN9lCESZ010GCMbn8V+fJiJkI2P4docExvZNm3dsBXN+6JZaTauYPNsw5CVh+JShMyYsVkt",
        "/gcuZIZC",
    ),
    "states": (
        "eNptk8Fu00AQhset01gloAhFwkIg7QEBhxAJqQfECXFGnHrIzTjxJrbS7LqxowiJM+LQQ48ceQiOPAAnhHgAnoAH6KHp8u9martpVvo3E3tn",
        "5tuZsTHGnPtEXbLrkDp0QC0KYGF5PuEVhWtj7G8AXewTpdDFHtEQ+u4RvYK+4Z098wtn4dgKYX+BUvZ7RJt1F1rpmVTR6GM01vO5TcO+R5fG",
        "PGG7B72P51LoiSjTuMS2kHEysDHa0FzGKlNTxO5CvsvR4Vh2HV9aDvIEth9g+uP+e3s27qctpk6TqcwSajD9hN8btl/auA5DrFJdSLGKZ/LF",
        "MhcjOY0VCKUoyriUfZFNhFZSJJkDbvL+Yy4bc7KumT4wU8hMd6BkuYjLTKtIFRXPED7P2bZn30k1LVOxyso0qxCm8ladknWd928jb7mV19q4",
        "TuaSNurwGz5HbNsevbVnNs2pbq0XjQc7GAK6B7VdjmsWovvoQ4Cpa6MPXfQ9xBP32s3QGZQzV48ZW5BL2eDLr2q+pxCqNs6XfbFYKhWPTkA3",
        "OtHjmUyiTFf2YJsvcBECjvP1qp4hnzbfwkNT1+6YubrMtW/rifG5ZvJNPc8P3OxwZZ4Vm5IVdtoGNxg6pu7T50auZEeuQp7W98fZPtuPm7le",
        "i6xEOnkqeD50vj2ThOofwvMAluCehFVPyHWFe+JYhjv6ofPIfTgef08Bdp8r2mOuNnNZgpt179yai/+yvNs1",
    ),
    "waits": (
        "eNqVVz1sHEUYHTv+uSQmWFEKFwZNERGkXKyAAorOCIWAkAMRsghIRop0nrsd+xbvzW5293JxZKEUKVJQUEQoBQVFhFKhCEWQCiGUkjJFCoSo",
        "EAVCxknssx17efOzO3t75yInzd23t7Mzb973vjezSZIkj14k5AhJPwfIGBkhw6SECJ+BITKEnwePk0T+TqB1DhFyBe3ZC4TcQHs0RsgZtPGD",
        "hJzGQ/f2E/JPCTHanVFCTqHdGiFkCG1+mJCHGGgSLd5HyJeDGG+AkPfQ7mJsOcfV/5IEE49ITLfQMEyGD0OROg9j5goyYPo30N8x8SeyNTjl",
        "l7mIIypYU8XhMm2zJR5SX9AYtwMWN6Yp9yJOmaCuiHkYtoKYNtkybbDLnDZ5TBmtLUcxEw4Pp9K5m5wJVyyS+0+SZO2pwjksObmGdtFgnTBY",
        "D0psvofHq3W/2czwTqwlyVETy3V9JEH6CwDGYnyFnDk98321niTjZvz0s6p4IgMUXzPA8sOawjOY520iy2qGJXZBVorlNp6ZN/EFxZ2cXkNp",
        "cM9RbHl+fYm2G1xzF3mcB7TGF5mYpgt+CJ4WWjG/UtZPtf0lbvtJ6vLruL2mMZ/BV+2xxbtSyLPEI6dVEjTXs+g/Y+IK2jkkmDlOyKOokoI4",
        "FiGbOsWhX8edss6y+RMSENyb6ua2hlxKPL9u2Hw+RLtX4HC/wVRdcoWTw/U3cK2YuIl2XtJlkgkaYrbIAUsn1sBJNYj/F9wwisuSLegPdFZS",
        "Npv6J2xHvFmmYPLEu7OfppdhXFX3pwo6Wd1MkjHzn/wceWI14mF933XsGm+iBX104rEortZZK+J2jb9hnNMmftXUWJTpFhLBM2aJ+Rrr0fHc",
        "ptbxSE7H93MYx4Hvg02L8Tba9YI2hqUHaHgZPg/6nzWxzOXHnEXAYdBpyaYXhYTUlnPSkHfrS1EP7pltzeuwweA9tZgfAPPUutVyyumk6Qur",
        "JMp9qmrwar7+juK5UyY+hvZhDkUKWKbdhHKYE62gu6Y6OSw/5nDcKORWxhaBxXBn3XJ3dg8M3aRRo20DpyzLyxD3OWgv1NetdYvvle1uz5wv",
        "cCU5dkUUYxJtmvn633h+3yQ7Om9DZvyjGxbLylaS/LVh+brWx79TLNI0UxyPNrp96H14YD1oVRQlcc5AQ+wtni8WOWrDFIXMpcTWbrgeL/D0",
        "y4b1xi86FtdcnxoN+aUWhu3SUoBnqIkPmxqtKe82vQvznezY+X5+ZvOykpsz78fFfPzZef58zO3o+t+Xr/9Orv6B4+pm7z42bvrK5/K5cNC3",
        "YeLP7P5lVBuwMK5QrL3F9U5miCjL1JQhXzfGDb2HITNwYZwatN7dRcG8MsUt5cxFn/U2LXdbO5a7e8ZXi9xJM8xzNwntzZn4nM6VG6rjCnaE",
        "0G9m5SWPLNg0WL2hdlaR2pXgV+JpymoKMfh2ALJBTxZxlsBcCbOUTG0NGkzlLcv5deD/d8ty7vXxWzV8Dv/vW3Y/OJ7xHnWfr05W+nhHt3f9",
        "sa01+3ZiObyb864Uw4jSvPR0i2Eez5438VuSxwXaEkvCb4sKFb41pxpHhnl3/uvLdY/jxOL7qkJ7dFrCzClv42bd6aexbbkbAjLtLYfhYSVc",
        "jYLncTw9oWowXdPkgB6kqAtzlMjWdAr6f2DinxTvl906gCoNA7bfDDweuz6WCI2z7vqehkTCpbI0o7JhWx6MjCXtIXlELg7KPuyK1/3Q4c40",
        "MuYHAcfeGLtNHpYhtliPnJ2UdWa5cOzO5GJ+w/9UgcuSWlEp3W+e5fnT7xdiZ28fPqDqByeeut8ScS7/O9aHpRZn0Sc7/oV+u0KbOu+w4deo",
        "m9vIcMaHVPFaQF9/482e3Ie7WpODuxbTzT57g9MKmUxFVUQZpifAdNHE580Z1eNiEUch+k5WCYFCGrVQ5j4NW0KwmscxDD2uE8qdqut3X4ve",
        "M8nqjvWg73f33i9kjOO6q4DmtPbtbvd+cVb2yVtnYb+Y37XzvZzY+Zw+Hh3xS9k8JfQtm/il9OwomahQV9LAL6VJ84Oif8nKL6kqI0Ri/To3",
        "72wfn/IDfbhJ576O/kdMPGrm9oOiPg+hjabvVmp9kpGJrJ6JqmhTz2rub/q8l8oSqJq9aUzdH1OqL5mcSAwzBoPsK2tTnUxVETJVbLTtxg2/",
        "FevqnKIX5Msr8zRfkXo/jRoMqnbjPp411rOO/wHWg8gV",
    ),
    "requests": (
        "eNqVWE2IHUUer8TJOBvH2dk4Yg5DqJVgPnwbshIkTDyMzjhmcYwxRgwS9qXf65o3Tfp1daq6M1FEgoRFJIccZQ/LIiIePXgIyx5EPHjwIEuQ",
        "PQSRZQ97iNHEyXwkk+n9VVd1V3W/NyM2/N/Ue11Vv9//s/41WZZl/36EkDFSPNvJMBkk28gQRni2DJAB/El+yDL1dzdkJ+b/fQfWQN7+HSED",
        "kLFRQuZ/S8jnI4QchXz2MCEHIVeH8R1y7SFCZiFfYdPDkI9+Q8go5JMhQiYh1x4k5CTk+0HsA1nbht8hVwF6GHL1AWBALm3F3lsIGYdcBhfF",
        "6X1wA9GtSocQgu1KfbAVYZHfjCRmmPlKl8NmvB8y1aBc0GSeUcykfC4fzoWpnKfeXML0K99LvAOEgCLpMi8Kog6Jc1yyZRIfIzcth8Rw2Gk4",
        "QG0SC5bvqIgUPNaw/hkzbkCer6O32BwXrISne4+feH5m9rVXj+47oPZ1uaw5XP7qcHm7xkX5NN+c+c3Wm9Ym72HNtBkfgpwsSSTzXkIlE+eZ",
        "j3EgqWDnUiaTBvXAtxOcZ5IGiaTTPZyu3LSc9v+Uc9qmePwT8kHNT2odT5M277KS0/iPWeab8esQvIxDljAf0C3JRQuM9opzzS4THbavAWKp",
        "VD9FnJqpAY9AnUV4yWMW0b1QRVkzEV6b7ZHK3zCly/n721k2auKmeE79qPWg+DgDPZYcXZR9T/eJuXZH8DS29v0f9thrxmrdVP6+dHcgZEJb",
        "Ae+x4UXwQfogH/XzX4fLDfD4i+YyqLCv9PF1zOM09JQhnPjHmlNm/CLkWViuzYUP28WCt5mUFB5O8dVTnMrsMI7XwSCpTNtIkGIJrMnjqi0v",
        "38qyJ25ZfmGNH9KfeN1W0El5KonlN4Y1h8x4T85PJiyGT9MQlELJkRgIPg5OoiC1R1axh2C3D2/ZPPBrPlL25HEz8B1cxfegGVOTAzxu0CB3",
        "EhIRwc8ueO0kfJPyiPX66paN9123LXZc03tIY0OfKCEO/vBtW5f2QV6OpUm8Bl0IEpWKXDKdkH7gU1iALnhBcqDG44nFLFP8P3Q4fNTH9kHU",
        "nAuDznzicLiCNaEZ/9nYwGfngzxdKhaX8EKygOSi03klmKImuXQwTx9RScqiRJnPpqOkHgzZDaQE01o9/c7wfuNny/uk4T1ueONIITmBlJUG",
        "LLjPYt1OM1b6ndDzZN0+M3c0zhcOzpk+NTuvKwalwPj052oev6TmoABGCXdzpCc2/mEwn160mKf7+AT51qPXbqzZXeQG5LmAK8RN8fYvabyP",
        "FzfPASYEF67/F20O/F6dSep9UaasG4/QgxOIP50ELu6lRVufHr+zsR+HnXrebMepmwdjd6p+nDr+moqtqTrWyLLW8X0H53i/OJcyLUAKjAv9",
        "MabrGMJg3PwFDBORFYzr/TFeqWN8azCOLdtz5WKf+NhudeHdrsWZXqrGxzGvy7TL8owUzPN74uOrVX3ODTjn3OSS9d1RcPnPktX5woZ2TSo1",
        "9BusmTTjg3n9UPCaSj7fd8P2CGgmqCAePbvAxVkmenheczhFK/3PXdc+RWVw7eMv/3r7rKzqc/cBs/fpZcvDB4/1ZWub+Q3joWqbG8vV3HJt",
        "Yw7cnmag0ps4HN5Z2bzn9Z9qV3re+ZVqz1vmHiryH7RnMJygvkBDJ/KCrst+rUb7K/aM27pqOZzqw+FcjcONFeuHx3o4aItFtXP8moMnVnvr",
        "iVuvnf1KzDNYM27G6uyYmqBlG1m37+SqxfpudeM6PVTGvtLO6vf1alW/WU+dgw1ziRDlaeRifuZgnrjbG1NFvRxRfbsKjKZFLvMf6xpmvAsy",
        "ow/giTLh9NGkXVvz56G7Fv9fd38h3yN0I4lWusD+/K7N96cgfwJqPg245aEo27hupCETDZpGoeovA1UNigPE5fOlw6d1b3MfdFiC7r/qg+P3",
        "rA8ehbwwUbatXhjyttfH74fvWcxvHczLfTCLKHUxv8Sak2b8AuSViWoeo0krOuojdK5spvESRcijMg4D3KbUj1wEnSDyQp39LsfrDsfz920d",
        "/MC5bxa5p3iIhVaF4/xatbecCb1O3kS0wrOxJ6Rq75AUCFQUgddfbdAZ9XHipbqthoAyhF0Unjo/tjrnx8U1W5/eA8dd65bndXPvq/M8G0S+",
        "y3MU6y6a8bm81/NU9yuChDXQ9Mq2J4rvzbeY4Ew29D21Qd9CNDVhVpa44ybcbr7PBVFQTlT3QTNsh2irG7q77dV3tNR32PBUT3jf6ppAz5H1",
        "jXtJdS5FoilZO+HCydu1+/rcV+Mdql6wqIMuP1B31nxqLTdUVVVcBs395N31zc8AvYvFC9dtDDxZ1gk9iyJEdbko+3YVqZ42bjUWt2c65xXr",
        "caAO4u0w7DQGjXfkv2ufX+hzN85jkcvKvWcgs3Z4RPUeXKdGUt49ane7fMcB80nIyrr1xQDR/6/6W2ZtM2s4jBoO6kzHviX+JcwdM2OFM90H",
        "U1l0u2N7pfvOUneSa2903/D/LqYQ5ZfOLSaehvA5YDRy77zH0m5L1cs5wbv0jw0VFOqGnrfiXhwzT3hRr12GIQ/mexW14v8SgIek",
    ),
    "bios": (
        "eNqNVs9vG0UUnqRO4hYDLlQoQIRGqIIeoipBCKEWoRCqQqUSUimqKlThrHfH9hZ7dzuzzo97xLlHjjkhDhXiD6gQqnLIiSPiwIEDQhwQtyaO",
        "E2f5ZnbWM+t1q670dp+98973zfs1myRJsvsCIRdIdp0jFTJNpkgZGq6JEinh8c9Bksjna5B/8eIupHeWkAcQCvmujBeQ9gzeTxOyBanK5xTW",
        "wTCGnJwhZAdSks9J+JwgxIP8AlPp++fDJAHg1Cz0HyA7qcshN7gjbpOH3QirtE30JElWtb4M+VS9p2GDxi0G4czxrtJGyKlDN7kfs+xV5DQZ",
        "dR23xebtv8RlQrAF0mFO4AdN8mc/Sar4PUnMtftE8iQTFLe/wPmDA8V7WvJ8oDnPDqMJjmHUbTuxHwaG9yXY3NH6DcgnlDM35B7zaMRDlwlB",
        "73dZFz8ls7ofgiXPdCoY32CCiq7bwr60wbuChhHo5/jv9JLkt5TfpOTXGuEn9boTu62a76l0a077sFnQutznslwjKYjtwAUPJ6bhZiAyRhI2",
        "h7t3kMZoCbfbhwY/yynV+OchgrlxyGuuE3i+58RMWDxWYXtN6+9DvowE9QPaaPvNFigEkoBgNHUhrtBwg3G6SH1BnU7db3bDrihwCxATif+f",
        "xcvTvOY0rwokjGr17RrbilkQ27GROb+k9TdlbLaRhI4TRchWw28zJELzuZzD/f3QxORe73mwUzc29nrPYL+RYXNnk3psw3dz0DnstZ7B/tvC",
        "vvtU7LR3bOw/dNyk/mqKbZqM8m6b5fe7b2F+dVTEzPp6KsVUBZhhfX5k9vk6ZA1AYTS+8GzMj44M5q9HxbrP9vmirLuo7ce1Bg87eew92M1r",
        "fS7D5n7TD5y2aj/MC4cq60JtPbLwV/rFHGd9d1bOBYejsvLYS/3nweYM5VbA/rBvsM8NzCyVPbc+EnPp3w07HTu/j2B/Uety3YrT0eMSQU+z",
        "XMAsY2UZFtJ3VfvKrv2+mZMV8Pn62MTjpuZT1WvPyHggEsP8Y+2c1mVN3ohFNucKHBaODc5jC+POGIzYwnh4nO/jtbSQ1Xbzwzdf17sW3nsn",
        "T89xWdnwJqsFwo7zxROT47cgX8i5ev0KVWs9jLc4VDkGBxGP9PHcicnxjxb21hjsJov5/RHsXdgsaX0R8ll2+GGX8gDZDDLgq9SpC9QndRox",
        "k8enojfabw8tPh8Pnn3OqJiO8FkYmHPmbcitIWxDn3ccXPIdl5sxA4NPyCvomTK+E2ZQM1VU5iz+UWiqD2KrJuw++MYPcnNub2Bq72V5Nqsj",
        "R4dlZKaXlbeSvqOHBqY2SiT9drp9WqxJ+/sg4HrQC2v+nZpZK/dwkwXNuCV5jJ/vy0m6/rGFtTrm+yk7UTKcn07NXuVMvO5zhDtdNZrr75O0",
        "dt5Jnt3HOIqG/qtYe0Hr0tc1dUzlYyiZyRkyrb8LvrX8r4+Jl86EGpwZzlaSj9fasKTH91GZvASZUb7t+pkd1g9RFaTrR3GJxsQTGEMeFfW+",
        "oqpBrrN7fKXbqTM+T+VpQxfnZSLl1x6XlX2rwK1S4PY/RKt7ag==",
    ),
    "links": (
        "eNptVL1u1EAQ3guXi4lOCJ1SnATFiIZATqmQiO4ahCJBRYFSIIGEfPbENrrzmrUvP11KRIWoKSjzCDwABQWPwAPwAFSQZPl2vY7tSyyNPbs7",
        "u998881aa61/rAqxIapnXfRFT6wKDx6eTld08fn1T2vzvQkbIf4Ug0ewNzeEyFaE+NTBGbAPWDdx64jH5p45N4N5sKFDMGf482kSLeQiNxBu",
        "z9lfrXecvwXbi5lkRlJRAU/x+wXnBQVyMQtpyuSnEvOKZMrbYg3xc/bTJI3E7Ezrjw38I4dfcezB8thXHNbYR4jfdf5jhz1NJOWsDjgnh5Tl",
        "VEg5JrlPPk39IohHJj07zI/ToJ3HH+QxOLN5rBjscCkPlFFMjwtu1kAgftP5d2BPzboBKMpiJKn1kFoby7DysMtwewJ7cWFxV03Nf8JOlzQw",
        "2gYy3U9CTgOu8U+Anzk/gMVJFI8BqdgPUfGQspkfoPaRYp7QnMNkMR8bCUgtZlxWQ4WsJjSTh2O6lHlEfMBpkWM6L0Y09zMKYj+NOGzz2EE/",
        "3sZ4RdTPb1tD0SG8noPXQ11z+w774riRizf7Xbe85YOKYc0xPNd6z/nPYC+ROe27NkNl7+dVs40pk0lasLLEcg4KfDZDHBqAazkelYQftHl4",
        "UNno4bl8Og0+385rPkYxq7sYiLuI7uGUPnZsQKmBna95Lmto/Ov47aJGsfNfO34Q4B2oMG7OMW1VitYc+KiAPCPK/AjMbGtPMFCYNMEy58sm",
        "VEmUpP7sag96NqOuewvx9aLJs/yP3NP1fXh1TU9WuiWNu7mBPeT8QX03a5m2RSuPoS5xzT343MDbu+Y/gHNaWCeIHzrfq7G2TXyb6y3Ymo2p",
        "sEx2w0sNhVXRadji27z/MrPwFr9v1/u2glVc1+GW/8Llevev5PAfBYY2LA==",
    ),
    "deferred": (
        "eNp1Vb9v00AUvrZpaoqBUEVQQZFOgFSQooqBoao6VFChTkhIHSqW1okviSX/Ir60QupQoQwMHVDF0IGZAfEndGDmb2DgD2BiSmka8935nLOd",
        "1NJznu337vvuve9e4jiOVw1CKkRc88QkZTJLDHi4pkqkhJ/eeRyL31vCn8MNdlwmZDBLiAv7jY8hbDCDZ1h/mpA92NkUISbsFCki/2c/jrFo",
        "uQr/CAZYskiS6xrM8upOqxt0IwGtcs6Qs6X8Ndh2m9HQarHliDYdl9GgQzle1Z0AbzrsXZdFnDaCrmvTOqOWH+BrhwY+W5G0iccs3/FbZP1f",
        "HL8913z2FJ+q4oPtkahtdZituWwhvqb8B4oLgKnlRgFtWxFNwOrvOYtWSB7vO/BeXUi8WbHnL7DDQg1EzRuB33Rs5jeYxv0B3E3lP5dr2k7X",
        "q4m9u8HBGh3VrUbZPvN5hNcRr1HPCmmjbfktZgs6OT5t9N3E84zC/iVrQaYobjvg+TfD9RMsLHAVPttPmWquLvb5TPmPRB56tSZb5FrozEHH",
        "4aIfTcqsRlt2ciXHy4ASDWSL9QW/aYV3+E/z64PbyUDz603oX0nW0vOy3AzkPVa+iHtteUxQ4W2L49Zh1nidDESmfCpqrfSqXGhOx+DzLanZ",
        "tFh7R/GpqFhRZ+7YIy6fEftE+fellgR8QgUi7jI71XW+Pr0M5r2BxuOF/lxP9h+6jLNdPxrhmshZV77Q8ktRAIePzk7SK9viFnUgaD95RKcb",
        "bKw2lUHCZQO3r4PxvWe14kRRVxLJ9OMUOVT5t2GbBS7FM3SUwbtzqfG2J+DJGhbwDOQsKf8G7E3SfFXlPNafDNaHDFY44cwKUXPmS7QUiyNn",
        "VflP1awIQug/4ExiCulHlAejB9rAiWBFHvxS85gfah52Qe8Yw0QOnsx++5d5jb0Q39M9g4zjT9aYmH7zyBIzcEOuvkCWgFZGlAlFV7H7Bfk+",
        "OX+HV5w/MaCz9f841OfvrqqJiKnRZifwZOcxsorzwJAZhsrrDbX+SyT5f3oYX6090R8lp10nM8ursdbegp7ly1nxZXkMhroPJ/G49rL/G1gn",
        "h3WE+MVUgxprwqy5CZuTMSmWYLc4qj2R1Ve1z537rA6CUMJLfFN+N2UFRVx2NitNypkzEmaUSlPM62IvzDF+/wE4ma+l",
    ),
    "batches": (
        "eNptU82KE0EQ7qyb7CBxDZJDDh5aEHYPS8hhEXEvoqDi34rsUQiT6cpm3KR7tnuywbtHDyI+gA8ge/YBPPgAPoX4CJrx659kJoMDNV3dXVXf",
        "Vz9dFEXxY5uxDrPfVdZmLdZkETR8jW2GKxb9KQq3Qm5DeXWFsW9bWCG/G4wdQj7gztrswhaOW13oWfC5yfy3CxGUTGNNYpioucxhGfwY/A6D",
        "vgd5QbMRacPjJFFapPKU54rnE+LJVBm7pQuSeZ/twHZGscQRu1wWBcf+U4XDxxqHaxBN53My+YrCmsN7+J0E/THkwVQlZzxYG67GjsAozpPJ",
        "nuELpc+O+FhpHnPzTib3cBvnPLWWGV/EaU7CXm9yfF14jnf+lhy/1Di2nb3Nf01xzXEffm+CfmwlMx73rUoliU1CnssBj6Vw1BWMFxNliC80",
        "6BkY8ERdkLZMU21q9WSYhQhILWiW868K5yeBczdwtjYkxVCakutP2HeDbuM+ROtIbGJ8dzFZ4z5+T5dl/Ochfi/Et/qITlPpEEqMu8tNjOOM",
        "ZB1jf1liXFYwJiFuJ2BgrFmeinXsz7AdBP0W5GSiKRa+3Lb7vr/lUPQDhxVuhImPcBL58A3ulhvoc4R67aDPHdSvhxN33bS5fq3M7Kq2TYjJ",
        "4oQqeQ+KclYfQZ6l6HF1Qnkq3WamBE2PwkCMKF8QSe4q6caCvJufmH6df+QQooCTFb6O3O1b/t2CfW+dD3MZhXxcjcX/+mj5DVOx6mPbnbcd",
        "0uod2NjXIS/n9h0c8LFWMz7o1/i1N+pr+/sPJW363w==",
    ),
    "members": (
        "eNplUEEOgkAMHBRlNcQYw4GDB84eeINP8OAdUYlg4kIiD/AVnn2kd5ztrkaxSZvp7rTTtuu67uEBcxibIsQYIygimuczBzPF6LsIDOlPeuvy",
        "FXuQPIiIt8IHYlib0M91pYtjpq+mpauJWbN0eGbqyiKpm8RSUyDg26XIdaVPiKQ/vDXD/Utr47QipzWi101WHb90buRHDgcfnfSnv+IEii/K",
        "thEdYMEdFK8RyA3mVFnYb9He9fY0eJ+3h9LKi769XSiXe3N9ubKdQ/i9XQ3/fxbgBawRNzE=",
    ),
    "messages": (
        "eNp9k7FOwzAQhq+lLQFlQFUlKsTggYEBAQMjQoyIiYGBAQkCMcSCOlVsIZAYGHgMHoKH4BEYEOJBGKDhP9chpiAsXXON/7v7fOeUZVm+TxHN",
        "Ea9ZiqlDbYrgYTVa1MLj5aMs+TkN24f2sUkUwWyD6A3vrmG8/wodgpo9+AewiKq8RAgjq1JqeO0TtMveX+C8WSGTdEUkRigtbJFoo6zKtVkd",
        "1x3IRCt97uKYbBs/u591vZ0/6g2DehvQ9r3Pur0iP5WGs//Mv/Q5zi84/8jlb3PcPezQx/Z8Dc6V5ca6Vvn/D4gX3u8yF/ZFfiZsJsUwV9pO",
        "nCdCtgjqir1J9XoMWFo0nsXWqD7zrefpez37KpXaKnsTMq0jZtP7a8yUmKxiGqAJybkUF/Jmxb0wyUCKxIqT3GZC6hQtCnkJ94N5O/B4Brqs",
        "e3QHO55gmoGlqpCnPMyA6WlU94nPbVBK5IWAUqor+WsuEVRVn2Kfh9fzqO5R6li6tAhVB9ExYnog6TrlmPE2YKzm2Oa7wrMJ+DjXkvfn3f30",
        "83PXkxuXp/JydYIxchGRjxuW4fw67h3z9b/5yBF6PjfT9A82a4608Wyx249dFdaFd21fYXT/3rUYNu3iqm/oC4HIrcQ=",
    ),
    "tcp": (
        "eNp1VD2P00AQnYR8GJQiQIoUCK0Q0lFEEQUdFAgoKJC44spInBNvztY53rD2HSBdeaLiB1BSUPAD0ImS8ipKan4BojyJS5a363W8cYKlScbe",
        "mTdvxm+slFJfmkRd0tc16lCLmuTBw1VrUAN/wV+lGuaU6BzOXdj8CtGvOtEI9r1GtAc717EwHSuRA4B6D/4zmEdFDSKkUhYFVLOxI8T2rN+G",
        "7YWS+8HQ+DPuJ1FyQB2DR7XH+PnhYD/fgj13sL8htm99HbcrxYSn6ZBsrQI/tvhM418a/KbOe6v52NyeraGxQpFmZkT2niGHWf+65oVzJqYs",
        "Czmb+HE8rNTbXyjVtXyL64/D4QLnZ5dln1UOeGU0fpfx1OHw2eFwE/ZEnw9YNGWST3h0zCsz/b3M428vyjqntk7f1tH+XKRRFonE7beLnBfW",
        "f6T5Pd3dSVnKXx/xZMJZcjQbc1kMYBpJTEPTHTBE+DHzcSuykPEk2HwX71XO68zhFVf6b8FSMTnkmdM/4u9b/47REWeHXCY8BrV1RnnqcL2u",
        "RvWQrbG1zn4uSx2c/EcHc86lO5d7y/IddC0HNIrKaHVns9dQ5TqoOzq4WJQ6aFC+g2NVcvmg9bdFD7GA0hwuX8FlYP1bhkuU5jSYHwQSa8D8",
        "JGBzIbMNXh6Q9SyK3ao5/D4uS36B4XUD+B7m1sb3o4vMPp6Yqaxmt1/R1VWdG0GXVlgF51Ctzy8FXyZkoeAtPD0T7dmcB8qdXcs80/z6K35k",
        "GFp+RluftswyS18lxW51zHnHVNFxI1vrpd4xPhWSr9acvZERlq6ieq06H8txMONJ9pCZlspPA8tE2d56bx1Y29Qsvn3/ABPYGj8=",
    ),
    "fates": (
        "eNptUbtuwkAQXBM/TpELhFxQpDiJHlJGqdKko6CgREiWfQlI5izlnNQpU+Yj8xFUHLPrI0CUk8a7smdn58bee7+PiIbE55ZySikhhQ4niilG",
        "WRy853oDPID7iToW/ghVYSLDHGsUeCODg4LnAAUU1J8EqNp32zEDYM0faBehz4DnD2M7N5V+Z0q7ta/oUujEeBI9AWt4hkLCHr6B5s8e1nop",
        "O0MXe+aYuQ/9BFhujGbOo67bys22tjNvtmzcrGmdM266q689KNyOPfCePOjyWYkXirRop6LPudz95sKpjE+5iOcvoP4nG8N3D9q5fM9lI/N0",
        "8D4M3oWrq6Z0CCtkd/aqhK0udBQYql8VvPb/9ggD80FW",
    ),
    "losses": (
        "eNplUjFOw0AQXEdOckIuoihFkCJxJYUVeioeQJEiNciyj2DJuZPOBomOkpIn8AAKCgpewAv4Dhyz53McJSuNb2zvzo537ZxzbwOiGXVxQgmN",
        "aEgCDBHFFON4/3WOT8ZPRLQAnsHnvmaKU6BqjFqiCdSm/nk0YN0VIKjvMQRy86Abzgia13/OzQIf872pa1UvPd+qTJd6AzaCTowr0RXwjRoo",
        "DNnDC1Ac9OE8Y8tNqfs+n6g5D/wUsCo3toC6NFaCWlVlTWn0Mvjoeguocm/hv49oQH18eR8USVw+wG9c7+sVqIKvechnXqtHZcvmifZmsEJd",
        "GvgZUOo7k0ptmjJXqSyyJrutMJZUKmuNXR74m+z8JUGTY+16bzy5OOxrsdsXb2ve7evIczdLruPmnd/Ev098R87bn+n6XkmdbdWlLExeX1Tt",
        "KrfF8UyFrxJ7egIZom0ZPLf/3z9Z2GRA",
    ),
    "discarded": (
        "eNptkr1OwzAQxy9V2lqoQlXVoRPy2KKogpUJ8bF3gBmZ2GoqqIMSw8TAwBMw8wyIB+MREOZ/sVG/uOiss+/jd+fYe+8/W0R9YtmjHnWoTQIW",
        "JEmxJ+wE1jSuBD/RV0JUQL9hP8fzkx/vkdQZwtZNHtGQgnShDyq/M66mJMaPEX8UbQmdBb9UlZF5+Wid0Zm0pZPmyVhXT//qLI2yCzunPvI/",
        "ArPFnGKLyX02dXiUyHlHfBbtA+jFos5VpY2OEDkuKxkbnUw3eYS7EcjswDqFHvoVe7bF5hhj9Y2tV+wR4ofRZr20emcmgRsXOBGhTMKctzXO",
        "VeSMIoftWzNf2Ia0Yr2usbiXM46ZbrP2d1hEA9QWyOk2/76PiQbB3eZ6L//MWbvKqGVgh/fSa16LiPfEPRxz74WRWjklQ4Ic54Wy1txLZbU8",
        "n11PMonLd4iCuy653Y1+0+YL8gszqHKb",
    ),
    # [[[end]]]
}
