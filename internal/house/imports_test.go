// The table of imports: which packages of the product know each other.

package house

import (
	"slices"
	"strings"
	"testing"
)

// imports says for each package what it imports of the product, tests apart. A
// new import is a new line here. Packages of kit import none; only the access
// log encodes its lines as package logline does.
var imports = map[string]string{
	".": "",
	"cmd/understudy": ". cmd/understudy/reference cmd/understudy/specs cmd/understudy/terminal follow internal/access " +
		"internal/app internal/app/gctune internal/audit internal/backup internal/callers internal/certificate " +
		"internal/config internal/crawl internal/credentials internal/datadir internal/diagnostics " +
		"internal/diagnostics/profile internal/doctor internal/feed internal/forecast internal/frontend internal/query internal/signin " +
		"internal/slowapi internal/smallfile internal/store internal/store/contents internal/store/locks internal/tables " +
		"internal/webhook kit/lockwatch kit/logline kit/pidfile kit/retry kit/suggest kit/touch mirror request spec",
	"cmd/understudy/reference": "",
	"cmd/understudy/specs": ". cmd/understudy/terminal internal/infer internal/openapi internal/smallfile " +
		"kit/jsonspan kit/retry request spec upstream",
	"cmd/understudy/terminal":    "",
	"docs":                       "",
	"cmd/site":                   "docs internal/manual",
	"internal/manual":            "",
	"internal/graphql":           ".",
	"internal/infer":             ". internal/openapi kit/suggest spec spec/paging",
	"internal/jsonapi":           ". kit/accesslog kit/jsonhttp kit/token",
	"internal/openapi":           "",
	"follow":                     "kit/frame kit/lockwatch kit/retry",
	"follow/feedpb":              "",
	"internal/access":            ". internal/query kit/e164 kit/jsonspan kit/lockwatch kit/lru kit/suggest kit/token request spec",
	"internal/access/accesstest": ". internal/access request spec",
	"internal/access/seen":       ". internal/access",
	"internal/actions":           ". kit/limiter kit/lockwatch request",
	"internal/agents": ". internal/access internal/access/seen internal/jsonapi internal/query internal/viewer/plan " +
		"kit/accesslog kit/jsonhttp kit/limiter kit/lockwatch kit/suggest kit/token request spec",
	"internal/app": ". internal/access internal/acme internal/actions internal/agents internal/app/lastday internal/app/lookups " +
		"internal/app/operations internal/audit internal/backup internal/callers internal/certificate internal/config " +
		"internal/connect internal/crawl internal/credentials internal/datadir internal/diagnostics " +
		"internal/diagnostics/profile internal/export internal/feed internal/feed/wires internal/fleet internal/forecast internal/frontend " +
		"internal/jobs internal/outbox internal/proxy internal/push internal/query internal/search internal/search/columns internal/signin " +
		"internal/store internal/store/contents internal/store/intents internal/store/nodes internal/tables internal/tracing " +
		"internal/viewer internal/viewer/page internal/watch kit/accesslog kit/dispatch kit/limiter kit/lockwatch kit/logline " +
		"kit/onlinestat kit/retry kit/semaphore mirror request spec upstream spec/auth",
	"internal/backup":     "internal/datadir internal/store kit/wal",
	"internal/app/gctune": "",
	"internal/audit": ". internal/datadir internal/smallfile internal/webhook kit/accesslog kit/lockwatch kit/pidfile " +
		"kit/retry kit/wal",
	"internal/app/lastday": ". kit/lockwatch",
	"internal/app/operations": ". internal/backup internal/crawl internal/datadir internal/diagnostics internal/forecast " +
		"internal/jobs internal/store internal/store/contents internal/store/erase kit/lockwatch kit/retry kit/suggest mirror " +
		"spec",
	"internal/app/lookups": ". internal/access internal/query internal/store kit/jsonspan mirror/compose spec",
	"internal/callers":     ". kit/accesslog kit/limiter kit/lockwatch spec spec/auth",
	"internal/config": ". internal/acme internal/forecast internal/access internal/audit internal/callers internal/certificate " +
		"internal/connect internal/credentials internal/datadir internal/feed internal/store internal/store/contents " +
		"internal/publish internal/push internal/signin internal/smallfile internal/tables internal/watch kit/charset kit/header " +
		"kit/lockwatch kit/logline kit/suggest mirror mirror/shadow spec upstream upstream/tokens",
	"internal/acme":        ". internal/certificate kit/lockwatch kit/retry kit/token",
	"internal/certificate": ". internal/datadir internal/smallfile kit/lockwatch",
	"internal/connect":     "internal/certificate internal/webhook kit/accesslog kit/jsonhttp kit/limiter spec",
	"internal/crawl": ". internal/crawl/overlap internal/jobs internal/jsonapi internal/query kit/cycle kit/folder " +
		"kit/jsonspan kit/lockwatch kit/retry kit/suggest request spec spec/paging",
	"internal/crawl/overlap": ". kit/lockwatch",
	"internal/credentials":   ". kit/lockwatch",
	"internal/datadir":       "kit/pidfile kit/retry",
	"internal/diagnostics": ". internal/access internal/audit internal/certificate internal/connect internal/credentials " +
		"internal/diagnostics/profile internal/jobs internal/jsonapi internal/store internal/store/erase internal/tracing " +
		"kit/jsonhttp kit/lockwatch request",
	"internal/diagnostics/profile": ". kit/lockwatch",
	"internal/export":              ". kit/limiter",
	"internal/doctor": ". internal/certificate internal/config internal/datadir internal/store kit/lockwatch spec upstream " +
		"upstream/tokens",
	"internal/fleet": ". internal/certificate internal/store/nodes kit/accesslog kit/lockwatch kit/retry request",
	"internal/feed": ". internal/access internal/jsonapi internal/outbox internal/publish internal/webhook kit/jsonhttp kit/jsonspan " +
		"kit/limiter kit/lockwatch kit/suggest kit/token request spec",
	"internal/feed/feedtest": ".",
	"internal/feed/wires":    ". internal/feed internal/jsonapi kit/frame kit/jsonhttp kit/jsonspan kit/lockwatch kit/retry",
	"internal/frontend":      ". internal/config internal/http2lane kit/header kit/jsonhttp kit/lockwatch kit/lru",
	"internal/forecast": ". internal/access internal/jobs internal/jsonapi internal/query kit/jsonspan kit/lockwatch " +
		"kit/suggest kit/touch request spec",
	"internal/jobs": ". internal/jsonapi kit/jsonhttp kit/lockwatch kit/retry kit/semaphore",
	"internal/proxy": ". internal/access internal/query internal/tracing kit/accesslog kit/charset kit/header kit/httprange " +
		"kit/jsonhttp kit/limiter kit/lockwatch kit/lru kit/suggest request spec spec/auth spec/paging",
	"internal/query":         ". kit/geo kit/jsonspan spec",
	"internal/checktest":     "",
	"internal/randomapitest": "",
	"internal/sample":        "",
	"internal/search": ". internal/export internal/jsonapi internal/query internal/search/aggregate internal/search/columns " +
		"internal/search/lang kit/csvline kit/header kit/jsonhttp kit/jsonspan kit/limiter kit/lockwatch kit/lru kit/token " +
		"kit/tokenizer kit/xmldoc spec",
	"internal/search/aggregate": ". internal/search/columns",
	"internal/search/columns":   ". internal/query kit/e164 kit/geo kit/jsonspan kit/lockwatch spec",
	"internal/search/lang":      ". internal/query kit/e164 kit/geo kit/jsonspan kit/suggest kit/tokenizer spec",
	"internal/signin":           ". internal/smallfile kit/accesslog kit/header kit/limiter kit/lockwatch kit/token",
	"internal/smallfile":        "",
	"internal/slowapi": "internal/slowapi/fake internal/slowapi/format internal/slowapi/github internal/slowapi/kinds " +
		"internal/slowapi/stripe internal/slowapi/table internal/slowapi/world",
	"internal/slowapi/fake":   "internal/slowapi/format",
	"internal/slowapi/format": "",
	"internal/slowapi/kinds": "internal/slowapi/fake internal/slowapi/format internal/slowapi/table internal/slowapi/world " +
		"kit/charset",
	"internal/slowapi/github":      "internal/slowapi/fake internal/slowapi/format internal/slowapi/table",
	"internal/slowapi/slowapitest": "internal/slowapi internal/slowapi/kinds internal/slowapi/world",
	"internal/slowapi/stripe":      "internal/slowapi/fake internal/slowapi/format internal/slowapi/table",
	"internal/slowapi/table":       "internal/slowapi/fake internal/slowapi/format",
	"internal/slowapi/world":       "internal/slowapi/fake internal/slowapi/format internal/slowapi/table",
	"internal/store": ". internal/query internal/store/annotations internal/store/catalog internal/store/claims " +
		"internal/store/codec internal/store/db internal/store/erase internal/store/evict internal/store/fts5 " +
		"internal/store/history internal/store/index internal/store/jobs internal/store/kv internal/store/locks " +
		"internal/store/migrations internal/store/move internal/store/names internal/store/nodes internal/store/order " +
		"internal/store/pages internal/store/postgres internal/store/postings internal/store/records internal/store/seek " +
		"internal/store/series internal/store/sqlite internal/store/tsvector internal/store/verify internal/store/wordrows " +
		"kit/lockwatch kit/retry request spec",
	"internal/store/annotations": ". internal/store/catalog internal/store/db kit/lockwatch",
	"internal/store/catalog": ". internal/store/postings internal/store/db internal/store/terms internal/store/words " +
		"kit/jsonspan kit/lockwatch spec",
	"internal/store/claims":   ". internal/store/db",
	"internal/store/codec":    ".",
	"internal/store/contents": ". internal/store/db kit/lockwatch kit/retry kit/wal request spec",
	"internal/store/erase": ". internal/store/annotations internal/store/codec internal/store/kv internal/store/names " +
		"internal/store/db kit/jsonspan spec",
	"internal/store/evict":         "internal/store/codec internal/store/db kit/lockwatch",
	"internal/store/fts5":          "internal/store/postings internal/store/db internal/store/wordrows",
	"internal/store/fts5/fts5test": "internal/store/sqlite",
	"internal/store/history": ". internal/query internal/store/catalog internal/store/codec internal/store/names internal/store/records " +
		"internal/store/db",
	"internal/store/index": ". internal/query internal/store/catalog internal/store/codec internal/store/inverted " +
		"internal/store/order internal/store/postings internal/store/records internal/store/db " +
		"internal/store/terms internal/store/wordrows internal/store/words",
	"internal/store/intents":  "kit/lockwatch kit/wal request",
	"internal/store/inverted": "internal/store/postings internal/store/db",
	"internal/store/jobs":     ". internal/store/db internal/store/nodes kit/lockwatch",
	"internal/store/kv":       ". internal/store/db",
	"internal/store/move":     "internal/store/db",
	"internal/store/names":    "internal/store/db",
	"internal/store/order":    ". internal/query internal/store/postings internal/store/records internal/store/db spec",
	"internal/store/pages": ". internal/store/catalog internal/store/codec internal/store/names internal/store/records " +
		"internal/store/db spec",
	"internal/store/postings": "internal/query internal/store/db",
	"internal/store/records":  ". internal/store/catalog internal/store/codec internal/store/db kit/jsonspan",
	"internal/store/seek": ". internal/query internal/store/catalog internal/store/codec internal/store/index " +
		"internal/store/names internal/store/order internal/store/postings internal/store/records internal/store/db internal/store/terms " +
		"internal/store/wordrows internal/store/words",
	"internal/store/series":        ". internal/store/db",
	"internal/store/nodes":         "internal/store/db internal/store/migrations",
	"internal/store/tsvector":      "internal/store/db internal/store/postings internal/store/wordrows",
	"internal/store/db":            ". kit/lockwatch kit/retry spec",
	"internal/store/sqlite":        ". internal/store/db internal/store/migrations kit/retry",
	"internal/store/postgres":      ". internal/store/db internal/store/locks internal/store/migrations kit/retry",
	"internal/store/locks":         "",
	"internal/store/migrations":    "internal/store/db",
	"internal/store/pgtest":        "internal/datadir",
	"internal/store/conditiontest": "kit/tokenizer",
	"internal/store/storetest": ". internal/checktest internal/query internal/sample internal/store internal/store/conditiontest " +
		"internal/store/erase internal/store/pgtest internal/store/verify kit/tokenizer request spec spec/paging spec/spectest",
	"internal/store/terms": ". internal/query internal/store/inverted internal/store/postings internal/store/db kit/jsonspan " +
		"kit/lockwatch spec",
	"internal/store/verify": ". internal/query internal/store/catalog internal/store/codec internal/store/index " +
		"internal/store/inverted internal/store/order internal/store/pages internal/store/postings " +
		"internal/store/records internal/store/db internal/store/terms internal/store/wordrows internal/store/words",
	"internal/store/wordrows": "internal/store/postings internal/store/db",
	"internal/store/words":    ". internal/query internal/store/postings internal/store/wordrows kit/jsonspan kit/tokenizer spec",
	"internal/tracing":        "kit/accesslog kit/lockwatch request",
	"internal/tables": ". internal/access internal/jsonapi internal/query kit/jsonspan kit/lockwatch kit/retry kit/suggest " +
		"spec",
	"internal/viewer": "internal/viewer/watches " +
		". internal/access internal/access/seen internal/query internal/viewer/actions " +
		"internal/viewer/administration internal/viewer/documents internal/viewer/list " +
		"internal/viewer/notifications internal/viewer/outlook internal/viewer/page " +
		"internal/viewer/people internal/viewer/plan internal/viewer/programs " +
		"internal/viewer/roles internal/viewer/sums internal/viewer/trail kit/accesslog kit/httprange kit/jsonhttp request spec",
	"internal/viewer/actions": ". internal/access internal/actions internal/query internal/viewer/page internal/viewer/plan " +
		"kit/charset request spec",
	"internal/viewer/administration": ". internal/signin internal/viewer/page internal/viewer/people internal/viewer/plan " +
		"internal/watch request",
	"internal/viewer/geomap": "internal/query kit/geo",
	"internal/viewer/list": ". internal/access internal/crawl/overlap internal/export internal/query internal/viewer/actions " +
		"internal/viewer/geomap internal/viewer/page internal/viewer/plan kit/csvline kit/cycle kit/geo kit/jsonspan kit/limiter request spec",
	"internal/viewer/trail": ". internal/audit internal/viewer/page internal/viewer/plan kit/csvline",
	"internal/viewer/page": ". internal/access internal/actions internal/audit internal/credentials internal/export " +
		"internal/forecast internal/query internal/signin internal/viewer/plan kit/accesslog kit/charset kit/header " +
		"kit/jsonhttp kit/jsonspan internal/push internal/watch kit/limiter kit/lockwatch kit/lru kit/suggest request spec",
	"internal/viewer/documents": ". docs internal/manual internal/viewer/page",
	"internal/viewer/outlook":   ". internal/access internal/forecast internal/viewer/page internal/viewer/plan spec",
	"internal/viewer/people":    ". internal/signin internal/viewer/page internal/viewer/plan kit/accesslog",
	"internal/viewer/plan":      ". spec",
	"internal/viewer/programs":  ". internal/access internal/credentials internal/viewer/page spec",
	"internal/viewer/roles":     ". internal/access internal/signin internal/viewer/page internal/viewer/plan kit/suggest spec",
	"internal/viewer/sums":      ". internal/query internal/viewer/page internal/viewer/plan spec",
	"internal/viewer/viewertest": ". internal/access internal/actions internal/audit internal/callers internal/credentials internal/query " +
		"internal/search internal/signin internal/slowapi internal/store internal/store/storetest internal/viewer internal/viewer/page " +
		"mirror request spec spec/spectest upstream",
	"internal/viewer/watches":       ". internal/query internal/viewer/page internal/watch internal/webhook",
	"internal/watch":                ". internal/outbox internal/push internal/query internal/webhook kit/lockwatch kit/retry spec",
	"internal/push":                 ". internal/jsonapi internal/webhook kit/lockwatch kit/retry",
	"internal/webhook":              ".",
	"internal/publish":              ". internal/store/contents internal/webhook",
	"internal/viewer/notifications": ". internal/push internal/viewer/page",
	"internal/outbox":               ". internal/jobs kit/lockwatch",
	"internal/aging":                "",
	"internal/http2lane":            "",
	"mirror": ". internal/aging internal/query kit/jsonspan kit/lockwatch kit/lru kit/retry mirror/cache mirror/compose mirror/hints " +
		"mirror/httpcache mirror/media mirror/shadow mirror/shared mirror/slide mirror/warm mirror/writes request spec",
	"mirror/cache":               ". kit/lockwatch mirror/httpcache",
	"mirror/compose":             ". internal/query kit/jsonspan request spec spec/paging",
	"mirror/compose/composetest": ". internal/query kit/jsonspan spec",
	"mirror/hints":               "kit/lockwatch spec",
	"mirror/httpcache":           "internal/aging kit/header",
	"mirror/media":               ". internal/aging kit/header kit/lockwatch request spec",
	"mirror/shadow":              ". kit/jsonspan kit/lockwatch kit/suggest request spec",
	"mirror/shared":              ". kit/lockwatch kit/lru mirror/httpcache request spec",
	"mirror/slide":               ". kit/jsonspan kit/lockwatch kit/lru",
	"mirror/warm":                ". kit/lockwatch spec",
	"mirror/writes":              ". kit/lockwatch request",
	"request":                    ". internal/query kit/header spec",
	"spec":                       ". internal/graphql kit/header kit/jsonspan kit/suggest spec/paging spec/auth",
	"spec/auth":                  ". kit/suggest",
	"spec/spectest":              "spec upstream",
	"spec/paging":                ". kit/jsonspan kit/suggest",
	"upstream": ". kit/charset kit/header kit/jsonspan kit/lockwatch kit/onlinestat kit/retry kit/semaphore kit/suggest " +
		"request spec upstream/body upstream/throttle upstream/tokens spec/auth",
	"upstream/body":     ". kit/lockwatch kit/semaphore",
	"upstream/throttle": ". kit/lockwatch kit/retry kit/touch request",
	"upstream/tokens":   ". kit/lockwatch kit/retry",
	"kit/accesslog":     "kit/logline",
}

func TestTheTableOfImports(t *testing.T) {
	found := map[string][]string{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		list := found[f.dir]
		for _, imp := range f.imports {
			own, ok := strings.CutPrefix(imp, "understudy/")
			if imp == "understudy" {
				own, ok = ".", true
			}
			if ok && !slices.Contains(list, own) {
				list = append(list, own)
			}
		}
		found[f.dir] = list
	}
	for dir, list := range found {
		want := strings.Fields(imports[dir])
		for _, own := range list {
			if !slices.Contains(want, own) {
				t.Errorf("%s imports %s: the table does not allow it", dir, own)
			}
		}
		for _, own := range want {
			if !slices.Contains(list, own) {
				t.Errorf("%s does not import %s: take it out of the table", dir, own)
			}
		}
		if _, ok := imports[dir]; !ok && !strings.HasPrefix(dir, "kit/") {
			t.Errorf("%s has no line in the table of imports", dir)
		}
	}
	for dir := range imports {
		if _, ok := found[dir]; !ok {
			t.Errorf("the table of imports names %s, which is not there", dir)
		}
	}
}
