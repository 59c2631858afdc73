// This file has the table of countries by the first digits of telephone numbers.

// Package e164 finds the country of a telephone number (ITU-T E.164).
package e164

import (
	"strings"
	"sync"
)

// assigned lists countries (ISO 3166-1) and the digits with which their numbers begin. Most are country codes (ITU-T
// E.164, annex of 2016 and amendments). If several countries share a code, further digits distinguish them, according
// to the national numbering plans (NANPA for 1, Ofcom for 44). If a number has two of the beginnings, the longer one
// counts. A dash stands for no country: toll-free numbers that several countries share.
const assigned = `
US 1
CA 1204 1226 1236 1249 1250 1257 1263 1289 1306 1343 1354 1365 1367 1368 1382 1403 1416 1418 1428 1431 1437 1438 1450
CA 1468 1474 1506 1514 1519 1548 1579 1581 1584 1587 1600 1604 1613 1622 1633 1639 1647 1672 1683 1705 1709 1742 1753
CA 1778 1780 1782 1807 1819 1825 1867 1873 1879 1902 1905 1942
AG 1268  AI 1264  AS 1684  BB 1246  BM 1441  BS 1242  DM 1767  DO 1809 1829 1849  GD 1473  GU 1671  JM 1658 1876
KN 1869  KY 1345  LC 1758  MP 1670  MS 1664  PR 1787 1939  SX 1721  TC 1649  TT 1868  VC 1784  VG 1284  VI 1340
-  1800 1833 1844 1855 1866 1877 1888
EG 20   SS 211  MA 212  EH 2125288 2125289  DZ 213  TN 216  LY 218  GM 220  SN 221  MR 222  ML 223  GN 224  CI 225
BF 226  NE 227  TG 228  BJ 229  MU 230  LR 231  SL 232  GH 233  NG 234  TD 235  CF 236  CM 237  CV 238  ST 239
GQ 240  GA 241  CG 242  CD 243  AO 244  GW 245  IO 246  AC 247  SC 248  SD 249  RW 250  ET 251  SO 252  DJ 253
KE 254  TZ 255  UG 256  BI 257  MZ 258  ZM 260  MG 261  RE 262  YT 262269 262639  ZW 263  NA 264  MW 265  LS 266
BW 267  SZ 268  KM 269  ZA 27   SH 290  TA 2908  ER 291  AW 297  FO 298  GL 299
GR 30   NL 31   BE 32   FR 33   ES 34   GI 350  PT 351  LU 352  IE 353  IS 354  AL 355  MT 356  CY 357  FI 358
AX 35818  BG 359  HU 36  LT 370  LV 371  EE 372  MD 373  AM 374  BY 375  AD 376  MC 377  SM 378  VA 379 3906698
UA 380  RS 381  ME 382  XK 383  HR 385  SI 386  BA 387  MK 389  IT 39
RO 40   CH 41   CZ 420  SK 421  LI 423  AT 43   GB 44   GG 441481 447781 447839 447911
JE 441534 447509 447797 447937  IM 441624 447524 447624 447924  DK 45  SE 46  NO 47  SJ 4779  PL 48  DE 49
FK 500  BZ 501  GT 502  SV 503  HN 504  NI 505  CR 506  PA 507  PM 508  HT 509  PE 51   MX 52   CU 53   AR 54
BR 55   CL 56   CO 57   VE 58   GP 590  BO 591  GY 592  EC 593  GF 594  PY 595  MQ 596  SR 597  UY 598  BQ 599  CW 5999
MY 60   AU 61   CC 6189162  CX 6189164  ID 62  PH 63  NZ 64  SG 65  TH 66  TL 670  NF 672  BN 673  NR 674
PG 675  TO 676  SB 677  VU 678  FJ 679  PW 680  WF 681  CK 682  NU 683  WS 685  KI 686  NC 687  TV 688  PF 689
TK 690  FM 691  MH 692  RU 7    KZ 76 77  JP 81  KR 82  VN 84  KP 850  HK 852  MO 853  KH 855  LA 856  CN 86  BD 880
TW 886  TR 90   IN 91   PK 92   AF 93   LK 94   MM 95   MV 960  LB 961  JO 962  SY 963  IQ 964  KW 965  SA 966
YE 967  OM 968  PS 970  AE 971  IL 972  BH 973  QA 974  BT 975  MN 976  NP 977  IR 98   TJ 992  TM 993  AZ 994
GE 995  KG 996  UZ 998
`

// longest is the number of digits of the longest beginning in assigned.
const longest = 7

// byBeginning maps the first digits of numbers to countries.
var byBeginning = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	country := ""
	for _, word := range strings.Fields(assigned) {
		if word[0] < '0' || word[0] > '9' {
			country = strings.TrimPrefix(word, "-")
			continue
		}
		all[word] = country
	}
	return all
})

// Country returns the country (ISO 3166-1 alpha-2; XK for Kosovo) of a number whose digits begin with a country code,
// without the plus. It returns "" if no country is known, for example for toll-free numbers that several countries
// share. It does not check the other digits. So a number that was never assigned to a subscriber has a country, too.
func Country(digits string) string {
	all := byBeginning()
	for n := min(longest, len(digits)); n > 0; n-- {
		if country, ok := all[digits[:n]]; ok {
			return country
		}
	}
	return ""
}
