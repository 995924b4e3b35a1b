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
        "eNqdWE2MHEcVLq/X64UsZFkiWBASBVjxOpqdrCIEkW3EQkxkI8tZRYsVQaTZmu7anbZ7upvumv1BPviAUA4+5GhZFuLAwQcL+eCDFeUQoQhx",
        "4MTJB5RTDjmQZLGN9ydrN9+rqp6q6RlfGOmt30xX1fveq/fztcuyLBe+ztg0o8+X2RSbYEfYJDR8Do2zcfzz4adlSf9+F9KZYezW1xj7BBvO",
        "Q+4+zxiHXPkq9K8wtj3F2ALk7nOMnYZ8gIPOQ+5/CXshf56ELcjKUcb+MYEDIdkRxh7BwBLk/cOMzUJujuH5IcYWIVewjOy/+FlZAtTYC9Df",
        "huAYNsvMB0eztlyLklaQ9Qi63TOLPces/k3Ia0u/4ukqVx3J9XKepVGimgxwWFeKJErW2PanZIcdWsSfG57NWzWbFKNecjlJN5JWUjib17An",
        "s3obsiRyRUZjoWQSbGEth+FCiTVZ0O+XoyTk9qCTgKU2pEy42kgBM5ciLBp8I1KdtKe4XI9CnCF5mvB2qjq8wPeiyQbw3/nM4f/15w5/ZvF/",
        "x+J/XuMXSuVRu6dkSE5UPixh3w+ruI/2AXjIOhdxbJ2p4Xj1c4fjj9saxxGK3fuQ6yNimaStXP62JwvlYnkfZ6xUmCBvSlHA98hcYZrxjih4",
        "kvJ2nAaXud1+khdS8jANipfjtCgArBs2+c/ahUwUbY2U3pYmskm2fcz3H5bltElL99k2fnDC+6As/7LtYhpaP16wS2lfIQOV5s6Hm1i/YPUf",
        "QF6P8kJxs6pKxjQ7XvBV/aAdpYP5+MqTsqQYvvgfZ/eatTtt7R4mLHK9b3Maa9+2+gXIGWQOpc2wNT9wDX5Z5omM51ETUETM57riElCePs1f",
        "WeBXeDdK0vxE7Z7/CXwUm795+K7U7vc5qgWhgk4rSHuJ6uO8hz1nrP5jyM9pDcpCdYSqrvgSSlSGfE7wtTztZTxIu11cYVRwwfWZJwbj1X5q",
        "8Fx8MByvKvfRqph12iJy93Ue+5as/hph8kNkoRUyX5cWoClP/aW/KKUsKww8Kgwf31hp8D1+MJxHfj1QrVXgKmyfYE/D6uTLErWvgmcCaR5y",
        "sYpr00BkEg7l9u+s3eShs7tp7XJrl/JJ5SIpIhWlST80ffudhy6Xv1+339DtgeqKOlwQ90IZ1nKFKmQSuyeszX0Py53aHU1RDGSypjqt9paS",
        "hY9jG/uU1SXdmV43kN+hUOIUX0X2ioTSqCtCXQCoL3RUWhYPbDK/95JYFgUv0q7kGzKnKxUIbAd/m7V4zj5y/e2vj4Zj6vuRrq4WUg37cQ/7",
        "Tlv9Zcgbet2QH42q43XTUMY8EV0KcW1u3fLwvPlfjWeC8Nys9aijuu8XWRy5OlzE+o7VfwP5xbqke40S3eL7cLhARNBTVZOfw2M7DagU5aYI",
        "0D+EGQX0y4odaXxOmsNo34mVQcydnbJ86mG9OgKrEtSOwj7Wf2P9eav/FLJcRcpMdFw4sp8HuPW2AXuSQKmoUFEAFFL0K5dm2CCeXeD55Y6b",
        "VXe83uH3+FzPIXePVx+X5VtWPztqTkU0phT1riyWSp7EtxZgUsfdwtjr6fLBD0WrLZGzsqWdGarhzX0zn4544+lPj918urdblhd2XDzrPIn0",
        "CoOfh4s7gzxp2fQQQ4/4BqYlRmoyGKtje2X53o7L+7ee0cMMX3C2bu+YPkT6DNVvQtSDz5v7g1rrGVd3XF6/tDtsz78Xc5bH/3adX98gv6Ju",
        "P537/tXsbXv2bnj2VkbEsoLsx/Ia9sxV9ms2B0hn7W47u87uzN4w1/VrgvxUkasJtlezqZnjKE8Hbf7Ls/mHvWf76vg1WXW+bnp2vz1kd9Bb",
        "3+7ynrP73r6rt9vPqLdAj36v/++5ejun+anXyLVVw53RFcxWn/+ZSR2keQgo4InS1KaScVzv8R8clOVUFWPq5fuu1o7hmcU+4c8vP/+zNOuh",
        "BiK/V9zGnk2rR/3+BdhxmqyBX6ToolmeBjSHrEtEeQR1C8MY5+ezKCR9fp6e/J++fQz8Pzpwsb8LeXdErgHLWi66ffzxF45bvkGxN88rrBV0",
        "S+D0bTR4e0sToliAc8pNGZyyKMFa7AZ6GUrirdp8KE2/O+z1u3e/cHdwC9xz3/OB8Mc1H8ZNz+v6Nbpw4HjM94gji5E1eryweVSP3SROJx5T",
        "cfAxD9/CgcN3Flz0o4NhbuDz9syr479j7Vmrv2pi6+eBB43PXVw6d0bzGwyPfL7IBAi+GbUnhur8Qw/TS09dvH4/4h1G87y0GOB9K09cnX+L",
        "/MJzTUP4ap52NTbQxkAOx2m6H6cpex59lp84PDHueMxiIgzvjIgRpqSb/9i7bPXX/flv3miwtIGc0pyB0+CiwPxkXcQ9aehgJlPMv4auC/pO",
        "7xf1mTPOzP993PBwXR/Rl9L2JbzHuTi9g/Wh1S9abCID1Qp0EwDIxMs0jdoccYp+A3vaKpTsgrzgpRr8QcCn2LAVUo4T01adGtazJWGcAd+c",
        "BKajiPM0MM7q2Vrd83XvnazCTxwiQEEW3j3TWYtVjdD7Dz33+J9urBUNndvII4VAUoE0eLPZHM67SW1x3P4FTy/dvdNbgOmrM0BbYWcavcU+",
        "5ueDjzvNWv05NKWfT2krtM5/n7zQ67ZlPuxA3kNP0mQxNI9tm9LZvNCs+TAFOarPrmbW/wB7S6wp",
    ),
    "transitions": (
        "eNp1Vb9v20YUPju2rAZGqwYeMmQ4oCgqo6qQFh0M2QiSpgEcwCiERg0yFE1P5NFkI5EM75TGQcYMHTJkzFRkzNAhQ8cOmQIPHfMHBJ36BxSo",
        "G8tmv3c8iqcfIfDIJ/Hde9/73g/meZ6n7zG2wcrrLFtnNbbK6tBwLa2wFTx2j/Kcnh9AXtcZ24IcruEcZKfG2JNVxhoQH0b/nGGsB3m0DH2J",
        "sVuQQ5yj8w/+zXM4XaZ4zyFwM4mN48wLo4FPYa19CHtt9QByld7zJOA6lDxJ8RCap0Ip6Zu/0iSKNW8Knsl0EHmixZNYkr2S92QmBlxEidps",
        "8SBLhvzzbS76Ssa6U7qLtJKDoM0Y0mJDKeIo3mcvDWa2xHHrHFX4tcV/3uInvS+0F96OfObk0MKZHavDNfuKbFo8ChzEkeIqFBmy+DnJ7hBg",
        "wY2vGSx7RwWWy7i9KrDUCMsvC7gUKvKlg+N32Pesfg3Sc6PHiQZVBpGXRRrUDcCrDjt4w5UW+5L35X4UK55kXMa+ItNMUj4uvt7bPP/hvwrX",
        "wxlcFHsgtHT52YP9rtW3pnB5yVAqLgItM1uhTxQFR1VHmrKjgnHyF3sHBGUKyxtg+fXYYFmlGv0BebqgZvIePMXeFKY3wPSj1W8QX9aGB0kJ",
        "pVMQ0uJ35EHnRvfK1WstvMmkALx+UWLgTwdSRyC2iZIS2EzeHUml1WZ7Cuv9cZ43bLzy2npb9d1vyOOncZXLY+JxAbeIOHTzeA4fF61Ofr4R",
        "Q1mOTwGWY4B0iA7Q0VDOcVhnDciKibMOOWNjvXaw7QLXt8fVXNyyuBrWls546WiCaQe23Oof0kx3vyshYUhjPdtTDPuIMNRsDtlJxcNTZw5d",
        "HsJEaZeHF4h52erExy7eT/PQ5lfMLuBRjNnLRjG9puVBruZ4aZ4W9Vp26vX3ccXJ98AYjCtO/AWcpFgTJb4ubL+0+sf0O0s8qRRv3uxe/9o0",
        "3UjJ7DOVCs+yRB00jSkcV/H/cmI/WRBbO7H/HFe93jXzZ/qiebP3rtDbPC1Iw6Yr95jO6H0ozCoJgQfjoTG4m3PcNU6qHXYpr2r54h17zMR0",
        "avkQ5/esfmmmp83eoCVBZ8r1ThCFO4zl/sIUt2f7fWPS7w0bs7wOTyp+qRuLWT3HLsC6Bi/rOLGBzXLO/F/k9AzyaEFOBqeTU/e02oGdRTlt",
        "c/NNA36TAfEseDwa9mXW4YEvtFAHsffRF3P51I3XuvX9+NTNofi2v59XvdJbgFWr27FysI5Pq/mlXHvRDNYZDCyv6v3AiZUu6Esl707i+LDd",
        "svqnxInJluazKF2L1CTz8R9FBwr7Xb/YntsfZ539QajPT2rGTNVszab2l8tBkhYf9SW7B+u4r1h2NyzGNfvtoqaarsE6ZM3Yljz8D89jEfc=",
    ),
    "stages": (
        "eNp9lr1vHEUYh8f22T7gkIxlIRcUU1AkcJxcgeU4yOAgHMlCjuQgIwWZvds53+b2Zi67sz4HUVBQULigoEAohQsXFBFKhRBVCkr+gBQUFKkQ",
        "RZrYF/vszW9mZ292906s9O7N3nw97+dMHMfxk9cImSPqeZVUyAyZJmW08EyUSAk/3edxrH7nIWsYe4zORcjyK4TIMiFPZwnxIQ9nCFmAbE0T",
        "8hgTypDVKUIeTRLybIKQHcgDrKHWWjmJY2wwvYj2d5CvIFiKvEWS53VIT7QZ363f322ITkfhmLkL4Hk7bUM+czqMiiaVLUfiFTDHrak1gEQ6",
        "zOEe3yNHp3GsdJwm9ll6rhjIBMVrGTy/6u+JSbXmUYGnkuWRnksyPMeY55r2thKNkOCoOdST1HdCeY02RUAdTj0uWRBEXVnFIGY/mWvw6ZWl",
        "FT3Q9Rld37p9dUSf/wz7Gl7NE8v9jeFeNNzKj3VfNNrM3eWhZd7BnBum/QFkywmksqEAUEBDn7FujW4DrimigHbRG9Iw6lApqBsFjvQEx3q1",
        "HNO3J5bpLMN0PMa3KZMnNNaQ6xnmtUz7iwxXxIdW8uowiiasUtgTnfqD9loeOhwasHsRC2USEQgM9DghrTPZY4zTW7CrS9drBXuunlr2304t",
        "e7dgT4Q/CSLOHUAo8pT7F8xZNu13Um6PK6hGS3MYz/YcT/lZR4JybS3P8WeG48O+5XhU4EDqEbig0Y3y9lvCnAPTvvt/HIHDa/Sjesg4otD3",
        "2kx3cnYgaUP4UYeHVerBtI0WaNk+hoXUFZQL1b+PGFHDey2hfCGdPVbQ47Bv9Zh5YfV4MCY+MV+yMMmqVI9+3+bUbZtTxqdN4fuih31S1hWK",
        "2dcoEs7BX52uz1SEVrMKJ+lore/JYgysvbDMf2SY5RhmE2S7WeaHmLNq2u9BPlYxXgxHbayqJtA5kPwRFln+yrA0z22tVHFwaHgWDI/aryVC",
        "ma1Jy2dxvGPaNyEbIkXwQmORNHsUVYLisn2vwdKwUGGDbIq4rgucUbVHkbM/SOpqKVNXvz+zdfUHsM+cj9anOTN2StkXRhzmP+ZumvZ163dd",
        "2Bll3M3ZER5PULXjEyWs+4us9Nza9Ofz0fqUzfFMkRuyHWKOb9pfQjYZ35OtFEjXp33HT8pmOj9U3ajkqEKq7njIoog7UgZePZK6JqdlVXX5",
        "SATeuK8ra5797wz75wPLfqfArtp1tufxpCwM2TcG9sx8U8WmGjOCnt9za2D3/PfCxqDy4c6YfaXY7Qqsld33Mdagpv0G5JOCB4t6bsRJPE1l",
        "4unJwMbTP+DYvxyfD9n8bAaik9KkLJsX+djK2UDT4NClepLOjVv0U3qT3qDr2ocmvEw6F7nLyMYyVk5jezLD/9OF5T8C+/ux5f8d8uOYfG57",
        "PHfHKF/m87kngnZVl7MqirZMPpP8rRrSK+mRh95hrWHd8KpWLuJtLnp8VI+5oR4Vs7967lxaHUq4Iyb5Po8zvYyvWYydA/+iviOmuh1k4jPV",
        "bTqp93sso9vTSxsj87n73PizpaxXLJk3zoocW3Jn/ToePcOzNSdk94b7u7E9u99V+0edOg44xEZyf6iqpghclpRLr6PqN+KLLuXvPzjpEHvK",
        "OoRQY5/FoX2ItpCxj+baGWMb0dVHimar6P6K1jQdVzL+2tZktYJdKpBZPTbN25fkA8VK",
    ),
    "states": (
        "eNptUzFvEzEUdtqkOZWAIpQhA4MRSCwlYmAqQyvUgSHqVCGQKqVO4uZO6dnX2MeJjZGBkZ/AyMzckYGBH4AQv4CJrWnMZ59zd0lq6fmezn7+",
        "vvfe94wxptsgpE3s2iUtskMaJICHVauTOj4/5sbYbwD7AOdqm5AjWLKFsxohr2BfcGbvfLsxBoGNLvxPsNDHPSD5ugvL5JSLwfD9YCTj2ML4",
        "2K/Xxjz2fgd2zGJO5TnVIdPYZpyNe/aNJizmTERigrc7sLrDaPu3luvnteVCahSbBq/jueO2Zd/+uMarVeWlozGp8DpCXN/7B7ATR4VmoVSc",
        "ZmzKn6YJHfIJE2DJqdJM8xeUDRUXmkbnVMji1jhCClX+ep5zPMT2t8JvWbeu53cHNk5nTEdSDIQquP1BzDPvP4T1uZjoMK+ap0KjgteE99bq",
        "96+CL25KfL2Gb32kGDnwSm3OEPPc+7Z3L+2dFfg9KmeVHzmFtR7egzUdxpILIffRmwBqbKI3bXS5iz/u2GnriuSaC7xW7IKMiYOs8CMLY0Lv",
        "v4WheqMk3aOzVAg2vAC74YUcTfl4EMnC79ETSzaNFWUzXjJ/ouhIXqSxUDSLUGUcQAECMlW9jZwChxp47NNFqcU6yefq96Ks95nPpe1z2bY9",
        "gAyXeXxflH1+5DTI/Ujsr/Bz+Sur4FWd/VqUfX5tStzPt+AqflngHuLuqff7Htdh7dNIA45fLuUlk7xsM5kp22+W36Mhe8ftCExYojAlOuPc",
        "BcQbOiDo9i6QduBRr4FuoQHiVOA14Li/uaX/Mhm44a35mQ6w1303Oj6Pps8DjNd61trQ4X+0eAy2",
    ),
    "waits": (
        "eNqVV02IHEUUrk32ZxJXXeIe9iChDkIiToYoMYRZERNDWMgS1rjiKspszXTtTrs91ZPunswu5JiD3vYgkkMOIQQRkeBBggcP8ZZDDjl4CJJD",
        "DiJBPCQm+5f9ab/66anunlnQgdp5vVM/33vve9+rjuM4vj1CyChJPvvJMBkkA6QAC5++ftKPr8LTOJbfYxh3XiZkAuPuS4TMYFx9kZCtYUJu",
        "v0DIQyyaxLi0D/MKhLyDcWeIkMMYVwYJ+XuAkFmMRWz2w15CvtuDvTEm+gj5BXvLM75/HMc4eFBiuiHPJhYftiE1HkTMFaTPzL+C+U1jM4zp",
        "Oqf8IhdRSAVrcBrhuc0WeED9OcpZrY4nN6K+UL80WVQv0TPMC3mZMkFdEfEgaDUj2mBLtM4uctrgEWW0uhRGTDg8KBkcDc6EK+ZJ4Vkcn1tR",
        "mAdkfBYxZgzuMYMboSF138PqSs1vNDrYp5/EMTX2KxjnJGDAlMj0/FLmrBNrcTxs9paf4SfyXNIn91gGjj/Vc9+edOzGOpntYIhch3Qw3Mca",
        "z9ifq/gFnDmAwCJa556jwHh+bYG261wHLfQ4b9Iqn2dinM75AcIz14r4ovoxSq1v+wvcruiO3V2D/z38uf6Pxf5lLu8Sm4SgKGmelzF/2tin",
        "MU46TsDDMAmfnF7OgHNNxgO/hnlFypHz5J+gh+BeieTw3QTvJbbSms3vY4x7udjuM/gqC65wUhiPYf0VY3+FcRY/S4AqnCpCKjgRm+eHwiRy",
        "iBXoB+QGopwy5wZhlEwwHkrq6k0c1ylrJ4u0ob+CdsgbRYqYH3l/6qPkMYgq6vd8HpY3NK+GjD/OU8urR6txXFq3/v8sa64HtzwWRpUaa4U8",
        "5T84OWvsD0xthimOyzUdr9IFebIaooLLFIXaZiFlsoCLFMkUvgyXjB73vDDvx8xz7cegwVV8Zv34ETlcTfnxm/xfjmcDUl+0Cx0f1rHHJWM3",
        "MD5O0pbNhkpiOnfVpRSzNOgw55gbccdQFEn6D/49Qp5GDM7kM7Jiffwa/v21Yuuoafx71cyFXBOlhRV1SCWtAw+x7pixD0mupoAnTkoqGVNu",
        "c6TVzOrT1RSWYNXiWM7xRdoWgcXgYM2Msc/ugiFXLSYZBg40nIpWowq1R2WboH8R+iKL8/Sqxbl/03JC5vmzXMwkn1wRRjhMi3cK7+ja7vqt",
        "8WXPXd/S/Ow3e99N4ZgCd79dszG73KOHJDikgHf6H9ZMGvtdjDNgUa3ZKqc52naVVEhVFPMcNRe0RFJwMqcSX7vueryU5Zu3ZvX51LrFNtOj",
        "/gN+oYWtM5w6tm7jc8DUf1WJn5mdO+9B6rzrW9meOt2jJ+TzcWP9/+XjxLaup72peppdtzn5A9wob1i/E90bMXPlunQuXsPcurE/sb20I9gB",
        "Kh9+t7juqiYI0GUmij30QEqF5rw7L5inBEIpTF4XRjds3H7ftnGTd6qrPeImRTYdtwcbVqfPm7iF2cCFdC7wG+nbFCDr6xSavEjkTvDFaJwy",
        "pXKyNh2grdOjuTwXEMECTiuY+tpjsD3YsLGfhR+3ntvYX+qh1Wr3dP4xf8LYZemHlgLliHYi1WXG6dHybkKew3trU/PqeJztg8s5TIOqDhj0",
        "xmI6sZm9p5xXv6s0t8SC8NuiLFXfCBj6BsdPPMuP2lLNQ/+LfF9VcNc9pQAESTxHTDySz9FNG9N+INTacwD6VsDTEOI/gtVjqj4T3w5jg+G+",
        "bt6Y643VP9ToPWP/qvJx0a0BqOI4YPuNpscj1xdSlzOFTw9bvXh9HBwKFopStoomG3KBycsuxQHLxRXfh5jxmh843BlH7vxmkzvYxG1w9GDB",
        "I71z51qvM86FY/uYC8KaTHTd7VUE+s1fcHArHUv9bvTpdve9Na2LsurROFoisnGbxJopY5+S2o85YXIXDfx2mb6pHGxIJrjpC0Ydt6GG5gfe",
        "Vt56+7hSlTDH17kdzdfVFLZrPfqJ0wqYTE9FhB1sj7azGjbJxTxKOKVhJTptLKURLLn7tCAPvmwtglU9jj3pGzrp3Km4fvZZdN1t7m9bDbu5",
        "s3uvkTZePVwFOsXFazvZXnNKzsnAzp43sWPPOxjb85weGh/yC51zCphbNPbBnMYkWTKZ9Ju5M6VCFFQVEiKxfpM6d6qHvvlNfUFKzr6M+aPG",
        "HjL91M/dwQq45RXwH/OOqPyTERnr1DtRFW/qXZ39U4/3bFkYFdPb9DvnsKqEgrlXSgzVLv/lKlm7+hVRsUOXseIzU4WpriN+K9KVXKIf4nU9",
        "YJ6OXahevMM6A8eZ2q6rdwx3+fcvwQ4hxQ==",
    ),
    "requests": (
        "eNqVWE2IHMcVLsmr9ViZKBtZwXuQkwqIZNeMNrIgxuwuWMqu1xtQ7LW9JsYRGfdM18x01NPVqu7ZlYQwwviggw4+iCBCDiHkYEIIIvhgjA4i",
        "5OBT0EEHH3IIJhgfbGUtabU/knbyVVd1V/WPMGl4M7XTVfW+9//eDofD4cT3CDlA0mcvqZNRsofUsMKza4SM4Gv5y+FQfh8CvY3N15/EGVBv",
        "PyFr3yXkwRj2gP7yHUIaoPf3EVIHnf82vkFX6oSMgS59i5BNXOyCbjyB8yACulzDHY8TchFEQJdGCflwDyHjoCtgPAZafoyQj3YT8sUuQp4H",
        "fYCtEtPPgA1Ad0sZLoJwVSYPriEscJtBhB16fwP7l/V6HvRi4FLeoXGP0dUe9xkV7PSARfE0nWtQLpIXzOzp+IOoR51OzNQr14mdKaJgkz5z",
        "Ai/oktkEE9l1DB+fWfhijW9c44M6SChYcqcEmWK8gTOzKd48RsW/xTpcsAwAnVh67cWFE2+8vjhZwvKJhSX4ymC5XMAi7Z1cztxm66zR10mc",
        "OanXJ6QvZCDinhPTiIkV5mLtRanmGjRkoueEEV314h7lQCmiGTpPsSUT4ccRnS9hjb8yWH/93wTrHonvGuj3BdvKc3wQt3mfZVhrt4bDnl7/",
        "CoSXoc9i5jao04q4aAHpROssFaebfSa6bLIBzINI/qq3ejygAZdisQBvecgCOgExJe5YOG0G3PAGqNnGHSKO6trf5DN7S8lBpc0hxzNrRhbp",
        "o70KP213BR+ERu83cUdDr38AWnKkLrUTeCKKacvjQKPO5fHUyBhoJOEhce3RfG5auOrA9I7S8ajE8UGFP4Q8HPiOVIrB5eNMqNct0HEaCt5m",
        "UZSCM4co3GEA5fKApS+BOcrCSvuL8qGIOgH0Xb5lKu8j/wDu59YM7mJMyZTi9Fted8AHETG4D63lY+o4jWIW0jYf+C51/IgjqHwedGnMgSRx",
        "2hRgyU8Xvx4OP14zseQW7Cn1zcOm51r8/4T9R/Sa6jjiYYN6ibwIZkQHO+O0Y/+sVFiJ5/trJjae+9rwfq8gf03xhlxBTGz5ceaEXr8AeiWM",
        "VASXLdHQgZvucD03CYpVx4spEg/14ry//fXOcChl+qeF63qFXbyg2fG9bi+2cF3DmYt6fUbisjWfOZXLVrw23IfFq4hM5BIHKXGOJvBN5kE4",
        "qNCYn5EBz4JYqteEdvE6B2rve1EEGUr6fveukumPt41MJ7VMB7VMKG0kYT1gmcJTuS7fVuflGqWSvDzotyAYAOgTUV6HtzW//XcMv7CiXiSJ",
        "S3NLeRGceV6vJ2VNRJTJIMu0mBxyqRfAuS17TxVkXllXGH57pyyzbUdEcUne93DmkF4fSDF4QZFdjt/nmt/oXcPvfEUsMSG4sHitgdeiXk/L",
        "+ijfp7Y15p6hR6bhuAGzvUE6clYXCrnl7h2TH39nYVou2L1u1ZZmOxzYcXYJ58b1WupqbukN6aZzRV1/dk/Jvnvd8FmqipkoGqRMMvmrecwX",
        "eSxsKB6db+ChPTjHY3m9kserRR5/1jz2bZgad6HCb/YaWXi/b8X/et5vXnb6ulokwS2Y45b85urmcDiW+r5+rq4b230B3b51z8h85pF6jXM5",
        "ehFnjun1kSRHS/YKSrLftd15BjBjJCOHnlrl4hQTJZzz9wymqc1v1k+aSWz9/Ove/6+fG1tKP49Z+rlhYakBy7kNo5/eI30ir5/ehqlhPyzo",
        "R9f6XHtS9JXlDYNh2+LvV/RD7tF2rm//z4bJcc/Y8YesflhZB8tp6gpvBXlW1geV5Qsx/umGqaPvbBoMb1ZgOF3A0Ns0tniqhEFpLCjk9cVN",
        "w+/WZjmn2Lndus/YH2cO6rWsN3PTufSV4/WhxeutrUfPHbXM/6V0lv9vmR7pJ7Lfd1Qtdb1OBz087QjetyyspiAnLWh5uY9tGSyfb5V9Lc2l",
        "+2R+ktc1DaIUz6dbpgf+PmhBFffpLBhVNVMmL9j5usW/s234X6jsS9D4xEoZWf7bNjVmBvRzcE222XU0amNcGvhMZBUm6Zyyn5Pqk9fLm9sG",
        "1852uYe0bdRlMUaVvI2+3DY6eRr00nSug1t10Ej7Pm87Ff5x0+J97r7hfamCd+rNNu/efTM7vwR6dTof7wl3lQhmkkZRIcNLJCyHRqHvYTqU",
        "P3Lhdb3A8VWWsDGeuW8wth6anHnZ6ofSGJU4xGorh7H+IN/nL/hON2lEWv6p0BERowgd+C26XDbVnaK/fL1BF+THa78o5dHxocqju608Ov7A",
        "5LAl4BvdMRj/rWfVIsZTXuDaGK/ijgt6fTrpIR2MqKvCi1kDwRa1HZH+3TzHBJcteTI1N+g5OFQTKmWxvW7C5Prvjhd42UY5v+pl2+cRbk8G",
        "m6Jf1IA2nRfHNM70qT008h6DrH97aPzm7YoaFohmxNoxF1Yc/+Gh6YX3y7zCgi7CBEbRWwuxK7OvxDOqZ6Uf7ZTj187T6hbDb2zHzDqzWd5Q",
        "uyhcVKePiZ8+e/Rw62zM6CDw4mgyC2Lpuo7SeMkn/r6jegQpyUEgGcXbOrR2AFrYn/yufOFKRS+bxBCPcnPZtZ18z7HIVbiYMWWKHtfdq+w1",
        "xCCQr+VMLa8q4aslHEf0JyGf7Bj7jRD1/7yVYbk2jGmMsmcAX/P/n6GJJ8lsPsHUoOh3AuYfRirEAoE80Xd+A7XNztKjR+h5jFUBF5MVdt1r",
        "2VXqcDzTIUm0qHVYOdvuTectWS1cpcN6sqeeSFzT9pZYD2czV0PVrWcbUoFcuGoK0yUsDJkjnCBpEwp6rIMeT+5M89H/ACkX/YU=",
    ),
    "bios": (
        "eNqNV09oHFUYf0nzZ6tpiVIkaJCHCOawLCriIc0hLSHmEGMqpfQgbmZn3u4+OjszeTPbbUoOOfTQo0iOwYOIeBDx0IOIR49BPHgIIp5EPHgo",
        "aNIk3Wb6e2/ezJud2YoDX/ab3e/P731/X+I4jqcvEDJN5PMcmSITZJxUwOEZGSNj+Ng9jGP5+RJoY4qQb58nZBX0B4Qi0P3zhDysELII2psk",
        "ZA60O0FIf5yQbdAxlF3Q3+cIuQ76bpSQGdDuCGzAprT901Ecw+H4DPh90FcgmCOXSPLAHLFbwu8GkNI6/X/iONJ8E7RuRW3qN6lFE8l5GrUZ",
        "9XseE/Jr+RJYLRbSpi8g1BM8YvkfqG3ZbValzA2Z+jIxk4pEbcEsp0YIjkc6zPK41yI7p4gf3keJedb/lWchIxR/HuBcf6r3kQl5lj19rhkt",
        "K+Mc+EHXtSLue+ZsB9BxNH8DdIUGwrdZGGaAMyW62WVd5qhvG9yvUpxO8zRk4jYObHnUD8qahbNsPIrjTw8V1lGJtV3AKvmGFdntOndUeWh8",
        "96Dzpublma9KGYki3PJsuLQimYQwBVWTugMxPEzitYg/Lx4Z//e1T6r9vwAKmR35om5bnsMdK2JhDscUdFc0fxn0QRBS7tGmy1ttQPAkAGQ2",
        "MRHO044vZFZlcDxGOcLUafBW1++GtQF8a4iLxPBNDtuOxjarsaEtiB/UG1t1didiXpSPzxfQW9L8O6DrsioD2thSEUnkqei6bD7FllRxxwoC",
        "5LXJXVaK2YMjE7PlRwbX9jNxJabzuBagt6j5t0u4EnmNy6LC6lGH3eY2eyNMYRbqZ+WRwfRrDpPzTExJS+Ux/Qy9Oc2/XMKUyCtMBd8/5nzf",
        "ODa+g8IcGU98qwJOfS5BfkHzNeOzVLjVFEaPe9LpMByrxwbH78flXkpjcEHWcuDyqN4UfmcQzy/Qq2p+NsUjeIt7lqu6WlWH0i7VxX7O/8cn",
        "5RykvXxexsYSqLxB3+sn/8e3YKjNku+VE+P7s76Z5/fk3ijkQdq3/U4nn/t96L+ueSm3ZnX0fEYisuk76LMCyQo0pO1pbSt9Dk7MHF4AHu/U",
        "xOOOxjOtZc/JeCASKZabp2aWzMu45KdvBucytRqh7F6uV4SwbEYdHyPX8yHEXLdQH+6pwXSWw3NzCJ4oh+evU9MXr6i8qE5QWAbn/+Ds+i3n",
        "z3tcnq352d5hosXqXpjPyQZ01jV/BfS+nOvL2Ky8k+1OpYdJG/mqNAAnjLLI9HjU9ruRHGdSrFbI3/ZjUzMX+wbf7hB8LRaJzQI+Ap2PNL8G",
        "ei8FhUhgUKF9S4h4JkB7VpjAcjR8ZK2N24JWKeRurm+wft//7z2pclLA+nXf7MnXQNcySE29sgWcDnZ33v/SE+MfmxL9WcG9aBLzdBpdMINv",
        "lDfVcwegH4b03C3uDczbRdjc0fwmSFZVNbkaVanDQ9sS6Xv9LhOo7CoWajdsV+ldbM06ELMoz9ct19XvTe7xTNAPmKdZ2/VDWFehrpX6uaLQ",
        "VDSmvSemfsdIch9996zcN/n7lCf0sgvNOefOkh0+piKH+yvzWrgt4nowfJddjRP5z3O+1ofcSdOtmvr5BPKzmpczfpkLpDSRKp71yzjZvxOx",
        "8bE6ZA5g7Wb2H8L+Jc1LW0tqJQ/2vEQmZ+KEvjs14/K9JR8vXe1qEWTzLzZ3A1mzHyYyycBBUQhuJk6+s7reLQ9NN2ROXwRNKt/5Gp7Japio",
        "KtY1PHR3y/PAXYZzSv0+papFyqV761U5C7qdBhOoVWxX+lZVJtoXTvKPwLVaEdtUCdtT3zoG2w==",
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
        "eNp1VbtuE0EUnQTHGDAQokhEEKQRIAGSFVFQ8CrCS1AgBCgFHUy8E++i3R2zuyYgRSgFBQUFQhQUFBQUlIiKgg+goKCgQIgC8QlUPJIs587O",
        "esZrY+nas96ZOWfOPfdOnuf56wZj06z8bGVNVmcTrIERPmM1VsPP8d95Tr87EZ82M3YZ8aXO2CXEywnGfuHlI8Q04t4mxmqIcJyxD2OMzSBe",
        "YR2tf/Arz7FpnfAeIwDNZgzyFoSIFoNOT/VSgjZrulizYMYXEAu+5F3RkbyteqHHF2Wo4g7PFBexynyZ8KUglC2uEo4nvhgo910i7/Rkms1h",
        "HxyBRVLEQdxhazjfnt+W2y3DrdQFx2SpLxLpWV4NzG+Z8T7Di9BEmCrui5QXiIv3M5lW8cI/eV7/q/Em6PwvECsVPUj/toqXAk/GbWlxV4F7",
        "3oyP6T29oBfpA4dq+STva9ji8q6MsxR/p1mLR6LL276IO9IjOgN8fPigiedNBntFa8HGOPEBz7cO1yeUkwpXGsu7JVPLtYVzHjXjA7QOeTup",
        "8xKKNOPLSZBBIrXEpWj7OqtzA7wabBJR0/sTv3GDN/vH8nsHbtfXLL+HI/JX01pGkcvtA/Y4aMY074qIJFHJfJHhK5FiWKcGZpZ8Js1e5eeN",
        "w+ky+NwuNBunvW8YPpNmLumcBV6fywLmHjbjvdpLBF9QgWF70ivNPKjPwb8W86uDt1rJz7bi/N1QZvJmnPZxP2LNJTM+gThHAgSwjKmTIlee",
        "yAQPYOi4eESm25IvJSricDhEi6v+fm94zeMrWRvWwfVNkKY9TcrJjYc13Ix3Ic5XeFXxWmsW74eDtzACT+tZwfuMNbNmvB1xrTCCUXwQ67mD",
        "dWXdYj0eUb9k8EzGGq3Eml+3/ewicQzgu2VfFuKqLqpCZVI/UEGk1L6yfs9DnUh+mJ5l7JWqBOrIoC9Or1uOPx2OK5W6QOtmukE5WnzH/Hkz",
        "pto9S+8dPQ6lJa+iUBzOVNRDNUPdcyt2ox46r1Gn2CxY1DGriYqYhmJT+v+iflf+U7/U1t2cPdqw9bvb9N+i9Wtnki5oedV+0tArGqXPNmz9",
        "1Fhx1+3P/+9Xyqmx4M3AuQumc+vXKXsXHHIN6/L4tmHz8zQf9qt772CfAaxVzJ8p7yCLNaJX7UBs1nNKLGI309eeafWN9hr/2Qh/qK6G1/hN",
        "/b6pFaR5Vw2PM4YHnKBd0bdwWpqYrHGqKGG1zIMYU1Pc4BFeSZGEgUzmhvg3h/j/A/+x1VE=",
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
        "eNptU7FuE0EQHRvbOdAVyHLhAsEKCQlEuIoiBQVCFKFBloiokPDhm+RWifes24uVdBQUKShSpKBAfAmfQMFH8BnEx5v1Hrc2rPTOs7cz8969",
        "Wdd1Xe/1iEbUrFsU04D6FCHC6vQIx/T1d13L7w5weYPoV5foGXDVIYqAC7yX82/IQ1FX+uVABNz2nVFGlc6o43MvkLvn48fAQV5ymu0qczr/",
        "wCVn6kQfs5qiZKqKQ1WVqbG60oWxidMx59Roc0RfHCd1nuNx97rlz/7Dvwj4I+Q+9fEDYFIWM7ZWPXw7efVSHRalOrVcPrGLdMaKl2wq+yjx",
        "HjTco+s1t8Ljxcpx98eIz+R7PH/jrfDkha2crX7/GfXKx0NgH+fuY3NWi0KbKtnk+wmOGPuu73kV8PdoPav7q9aDS69h7PMl1hk+RVfnoY4R",
        "aiY+Fh/3U5s3OuYwJT1idczniXrDJuNSpSZTJc9YL7HJ0yW7TJvOGTubi00bugl3KkL3ge9v6tarj8B0S+dNmZ8Gg8w70Pl91folc7WQozAp",
        "r+Uf3ghZwiu9Y99H1o9V69s7p2VId5A1QHWMmhGUDF3mWuOn4D438+zLfZIZBfqk166P7wGvxZFwnkqbtalFxifJltbIVUa+flGHsx24d6Jz",
        "/FcnOaVe58adDzVW9r2xXmPszmPHInnh3TvQW1qTbS9jYMfVNf+3P77ryNA=",
    ),
    "tcp": (
        "eNp1lDtv1EAQx+fC3eVAVxzhiitAWiEkmihKQYEIBa8CIRQilAKhCNiz92Ird2tjOzwkypQpKCkoKCgpKBAfAfEBEBUFNZ8g4h7mP+s92/dg",
        "pbHH69mZ387ObJqm6WadqEU8zlCT6lSjBjSMSpWqeP36m6ZV85dop0b0CR8np4geQd6vYBISVoh+Qw0hbPsHa+Bgpc1rIA2axiDCMkp8lyrW",
        "9gdshdXPQXa9SElXBD2ReEo4st/foFXMD5TUvt6nt8Y3VW7g8XBYxNldEicsxbkO20tWN1xR4Kg4ng2EUY41srGY78nIxKp1oL+B7Nl4bRuP",
        "/XpBnJjU2e/Pw2JvZyF38X8+YDleA/QNWLPfpt0Dj6NhwXE8TtN7o2Lfr+Y4cETUfZ2ouMRxFfZ3rH4Fsn046KqISSLlKP+FcoVZsiVkN1Y6",
        "Eb0gEtIgiiQQmHIXcvN1ku3tZ4nlyLJ0LAvrYRD7iR/ocl6+Y8396bnw2d3euRwjzPNDpR0ldI7Hier5EbLGfOsCFrIvJD6DxBPAihe4ttOM",
        "S48Lro9zOULJUxw4ByopmPZg71n9salDJQ5UpFUfaLNE2dJryFBfJph2Aq2Vw5vMLeRAGTzhyVhIDVrYZV42ZnmZhs+cmbimv02KOjuGuEvq",
        "LFQqKuezgzWbVr8Iuem6Ede21K4IgyivuQwjO80yg4ectbJWzsfJuKi5KmV3QTedZfOW1F4/QNmU2L6Abd3qF/7L5scWa64f2nk/tKzP6Xg3",
        "Kfhcw7VG52FZh4cmrNuowjVjWfTss7n6PM1r/Sg7uxKzlxZ9y3G5AQRawnbLQs01jNeqfaLH0nLu6maO+To5HxlCy2dq9MOSXCbxUz3t46b5",
        "3zRRGvb+Yb8PILcUGlbl14p4Gfno5rnu4URLNNn+AB2+JcyWiquI+zzf3uzempBVE3N67/4DkkpHbw==",
    ),
    "fates": (
        "eNptUrFOwzAQvZQktVAGVDF0YPDIlIoVMXRirBj6AyZ1IVLioNphYmRkYGTkQ/g0wLxzXAoFSy93su/uvXuK995fjYiOaXsOqaCcMhLIcJKU",
        "UoT3D+85HgCPCdEb4jTUTxAFOsboIzrCpEm4T0Y88wkQtJufAVXXG8cVAM98+YSGmM+BRd9e643s1lLfa+NsKZe3WoYuy7fKDA+yapS10vat",
        "dJ2s8Vibu96VzDMGWq1MbW6Q5dCQ4hvnY2ewZ6z/FXjY08g61spp+qHxAj3zmJ8Bl3hnLQ7KBpXn0motV11lZ7VxemNUY2dNZ622Zbsq9zQJ",
        "OMWamLeIPHyWQRslMnDlgY89Pvn2mB2ebj0OOzwDzT8+B11xdhHei8DIdadxF+5fqPb3LoOxf3wcOneaeZ5AhRgoo+bhf/kCCZJemw==",
    ),
    "losses": (
        "eNplUkFOwzAQ3FZtiVAOBfVQJCR8LFJU7px4AeLACSEgJG4bkdjIdpH4ACcOPIIHcOQJPIVPgJlN3AbKShOvnJ3d8e567/1nl2hIbNsU04D6",
        "FMGDdXrUw3Hz5T2fDIHYRYfoGf645uzijMDaApfzjHBTk7sjfC+BCBhRY30g00vlOCLkpG/vRfB3gNNldSuN0DNRamulneJuC6hkqgo1hzdA",
        "zh6+RCfAE/jI1mc9H8DrRk2O06aYF6qt6cBZBP8CMDLTJkd2MXELKZxJM0hAfSfkg1TOHgptBGKMLFNXaCUm+r4slMTdssyF0k5U6Z0UVior",
        "WXugTf9qj6CKtUfU9LxLrb3X76AO9+IN/pVv3/UClOFd4xDPvkUZU7hH+tXPM/CS4B8AhZrphBUWmUxEnrr0mhubCGmMNtMNfcO1vjjkZDv3",
        "rTbufC/Mfn89e578eDX7f5pXs2AeF1/pjev/cV2R4yYhZo/3IK3kMRoqRa4zexSWoco396Fhtpo5X4SIqCkZNDe7/AMWcH7+",
    ),
    "discarded": (
        "eNqNUj1PwzAQvUA/IoQQqjowemBopaoSEkMlFsTHzlBmcBOniWjPVWw+BgZ+AiM/gx/EyMzIBuE5cVWUMuDorIvv+d67OxdFUfQ2iXbJrS3a",
        "phY1KYSHFTTwT/gLsTf8TogTjTaIngOiLuzJn398FQUutbrw0/Ie4lStNmwhoxtlDQUe/wb8off3YeNUiUjfshWZEToRHj8QrK1Qd4qtGS5z",
        "zZXkjKf0ghzJd8m74bgea7xOa5nTleO5xsAfe/8AdpaZSOaxij2J6Ol8Sd4/EnJilNOUiFu+YX3Pw5oGQs9CZGvBc3k/f+m5rulxGMXxFZuV",
        "nnfg973vcOccu/It2pGxVfmdnK3VHWIyIU7CKm3geLlY8T543j3P6/yJmmZcMq+4r3Fn5P0+7MRh6uz/6EFIO2t6iDrgD1Fzu3xHu6iuU4Wb",
        "TuPrH70xNldyXumr3t52+fIcbuF1Sv9WYmmlqC6IXpRKZjUTEs07vbjE3FwFiBnNA5FgojNtjDI4ltbHIo2p5wIxjYN8OX6T6vt6fY3yI/oB",
        "/TShcw==",
    ),
    # [[[end]]]
}
