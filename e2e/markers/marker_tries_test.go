// Tries: what every route is asked with in the test of markers.

package markers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/e2e/rig"
	"understudy/follow/feedpb"
	"understudy/internal/tables"
	"understudy/spec"
)

var pathVariable = regexp.MustCompile(`\{[^}]+\}`)

// ids are the ids of a kind worth asking for: records, troubles, one that is not there.
func (g *garden) ids(k *spec.Kind) []string {
	if len(k.ID) == 0 {
		return []string{""}
	}
	all := []string{g.id(k, 999)}
	for n := range 2 * variants {
		all = append(all, g.id(k, n))
	}
	for _, status := range troubles {
		all = append(all, g.troubleID(k, status))
	}
	return all
}

// queriesOf are the queries a list is asked with. Filters go by the spec's
// fields, so some are on what support may not see.
func (g *garden) queriesOf(k *spec.Kind, l *spec.List) []string {
	all := []string{"", "?understudy.as_of=" + time.Now().UTC().Format(time.RFC3339Nano), "?PageSize=50&Page=1&PageToken=PA" + g.id(k, variants-1), "?PageSize=7", "?nonsense=1", "?understudy.nonsense=1", "?%zz"}
	var columns []string // all of them, those that are hidden included
	for _, f := range k.Fields {
		if f.Type != spec.TypeMap && f.Type != spec.TypeMedia && len(columns) < 60 {
			columns = append(columns, f.Name)
		}
	}
	all = append(all, "?"+understudy.Query{{Name: "understudy.columns", Value: strings.Join(columns, ",")}}.String())
	for _, f := range l.Filters {
		values := []string{"1"}
		if f.Name == "Status" || f.Name == "Origin" {
			for _, status := range troubles {
				values = append(values, fmt.Sprint("trouble", status))
			}
		}
		if slices.Contains([]string{spec.TypeRFC2822, spec.TypeISO, spec.TypeDate}, f.Type) {
			values = append(values, "2026-06-01", "2026-06-01T10:00")
		}
		for _, v := range values {
			all = append(all, "?"+understudy.Query{{Name: f.Name, Value: v}}.String())
		}
	}
	return all
}

// triesOf returns every request that the test sends to a route. It is empty
// for a route that the test does not know.
func (g *garden) triesOf(route string) []try {
	method, path, ok := strings.Cut(route, " ")
	if !ok {
		method, path = "GET", route
	}
	switch {
	case method == "POST" && path == "/-/timezone":
		return []try{{method, path, "zone=Europe%2FBerlin&back=%2Ftwilio%2Fcalls", nil}, {method, path, "zone=Nowhere", nil}}
	case method == "POST" && path == "/-/theme":
		return []try{{method, path, "theme=dark&back=%2Ftwilio%2Fcalls", nil}, {method, path, "theme=pink", nil}}
	case method == "POST" && path == "/-/sign-in": // of nobody who is there, and of somebody
		return []try{{method, path, "name=nobody&password=guess&back=%2Ftwilio%2Fcalls", nil}, {method, path, "name=anna&password=guess", nil}}
	case method == "POST" && path == "/-/lookup": // by who may not; who may is asked by checkLookups
		return []try{{method, path, "number=%2B15005550006", nil}, {method, path, "q=what", nil}, {method, path, "number=4176", nil}}
	case path == "/-/docs/{page...}":
		return append(g.reading(method, "/-/docs/"), g.reading(method, "/-/docs/?q=lease")...)
	case path == "/-/lookup/{token}":
		return g.reading(method, "/-/lookup/forged")
	case strings.HasPrefix(path, "/-/credentials/{name}/"):
		return []try{{method, strings.Replace(path, "{name}", "demo", 1), `{"overlap":"1h"}`, nil}}
	case strings.HasPrefix(path, "/-/connect/{name}"): // of the settings: no form changes it
		return []try{{method, strings.Replace(path, "{name}", "demo", 1), formOf(method, "overlap=forever&user=x&secret=wrong"), nil}}
	case path == "/-/connect":
		return []try{{method, path, formOf(method, "name=a+b&source=twilio&role=support"), nil}}
	case strings.HasPrefix(path, "/-/roles/"):
		return g.reading(method, strings.NewReplacer("{role}", "support", "{source}", "twilio", "{kind}", "calls").Replace(path))
	case strings.HasPrefix(path, "/-/view-as"):
		return []try{{method, path, "role=desk&back=%2Ftwilio%2Fcalls", nil}}
	case strings.HasPrefix(path, "/-/do/{source}/number/"):
		return g.reading(method, strings.NewReplacer("{source}", "twilio", "{number}", "+15005550006").Replace(path))
	case path == "/-/do/{source}/{kind}/note/{id}":
		at := "/-/do/twilio/messages/note/" + g.id(g.spec.Kind("messages"), 0)
		return []try{{method, at, "do=add&text=hello", nil}, {method, at, "do=open", nil}, {method, at, "do=remove&number=1", nil}}
	case strings.HasPrefix(path, "/-/do/"):
		return g.actionTries(method, path)
	case strings.HasPrefix(path, "/-/administration/users"):
		return []try{{method, strings.Replace(path, "{name}", "anna", 1), formOf(method, "name=anna&role=all"), nil}}
	case path == "/-/invitation":
		return []try{{method, path + "?token=forged", formOf(method, "token=forged&password=four+words+are+long"), nil}}
	case path == "/-/sessions/password":
		return []try{{method, path, "current=guess&password=four+words+are+long", nil}}
	case path == "/-/administration/sessions/{id}/end":
		return []try{{method, "/-/administration/sessions/0123456789abcdef/end", "name=anna", nil}}
	case strings.HasPrefix(path, "/-/administration/webhooks/{name}/"):
		return []try{{method, strings.Replace(path, "{name}", "none", 1), "after=0", nil}}
	case path == "/-/watches/new":
		return []try{{method, path + "?search=everything", formOf(method, "search=everything&channel=mail&to=desk%40example.com"), nil},
			{method, path, formOf(method, "search=none&channel=slack&to=https%3A%2F%2F127.0.0.1%2F"), nil}}
	case strings.HasPrefix(path, "/-/watches/{id}"):
		return []try{{method, strings.Replace(path, "{id}", "none", 1), "", nil}}
	case path == "/-/notifications/{id}/remove":
		return []try{{method: method, path: strings.ReplaceAll(path, "{id}", "0a1b2c3d4e5f60718293")}}
	case path == "/-/sessions/{id}/end":
		return []try{{method, "/-/sessions/0123456789abcdef/end", "", nil}}
	case method == "POST" && path == "/-/columns":
		return []try{{method, path, "source=twilio&kind=calls&column=price&column=to&back=%2Ftwilio%2Fcalls", nil}, {method, path, "source=twilio&kind=calls&column=nothing", nil}}
	case method == "POST" && strings.HasPrefix(strings.TrimPrefix(path, "/-"), "/jobs/"): // of a job that is not there: those that are do their work
		return []try{{method, strings.Replace(path, "{number}", "0", 1), "", nil}}
	case method == "PUT" && strings.HasPrefix(path, "/-/jobs/"): // of a kind that is not there
		at := strings.NewReplacer("{kind}", "none", "{id}", "0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f11").Replace(path)
		return []try{{method, at, `{"data":{"to":"+15005550006"}}`, nil}, {method, at, `{"nothing":1}`, nil}}
	case path == "/-/batch":
		all := `{"requests":[`
		for _, kind := range []string{"Calls", "Messages", "IncomingPhoneNumbers"} {
			all += `{"path":"/2010-04-01/Accounts/` + rig.Account + `/` + kind + `.json"},`
		}
		return []try{{method, path, all + `{"path":"/2010-04-01/Accounts/` + rig.Account + `/Nothing.json"}]}`, nil}, {method, path, "{}", nil}}
	case path == "/-/mcp":
		return g.agentTries(method, path)
	case path == "/-/feed", path == "/-/feed.json":
		all := []try{{"GET", path + "?nonsense=1", "", nil}, {"GET", path + "?after=999999999", "", nil}}
		for _, query := range []string{"after=0&wait=0s", "after=0&limit=1000&wait=0s", "after=0&wait=0s&kind=calls&field=from", "after=0&wait=0s&kind=messages&field=body", "after=0&wait=0s&field=x_new", "source=twilio&after=now&wait=0s"} {
			all = append(all, g.reading(method, path+"?"+query)...)
		}
		for _, accept := range []string{"*/*", "application/protobuf"} {
			all = append(all, try{"GET", path + "?after=0&limit=1000&wait=0s", "", []string{"Connection", "Upgrade", "Upgrade", "understudy-frames", "Accept", accept}})
		}
		return all
	case path == feedpb.FollowProcedure:
		if method != "POST" {
			return []try{{method, path, "", nil}}
		}
		var all []try
		for _, body := range []string{`{"after":"0","limit":1000,"waitSeconds":0}`, `{"after":"999999999"}`, `{"after":"0","kinds":["calls"],"fields":["from"],"waitSeconds":0}`} {
			all = append(all, try{method, path, "\x00\x00\x00\x00" + string(rune(len(body))) + body, []string{"Content-Type", "application/connect+json"}})
		}
		return all
	case path == "/-/forecast", path == "/-/forecast/{source}/{series}":
		var all []try
		for _, k := range g.spec.Kinds {
			for _, f := range k.SampledFields() {
				name := k.Name + "." + f.Name
				for _, query := range []string{"", "level=-1000000&by=1h", "percent=2", "nonsense=1"} {
					if path == "/-/forecast" {
						all = append(all, g.reading(method, path+"?of=twilio/"+name+"&"+query)...)
						continue
					}
					all = append(all, g.reading(method, path[:len("/-/forecast/")]+"twilio/"+name+"?"+query)...)
					all = append(all, g.reading(method, path[:len("/-/forecast/")]+"twilio/"+name+".json?"+query)...)
				}
			}
		}
		return append(all, g.reading(method, strings.NewReplacer("{source}", "twilio", "{series}", "calls.price").Replace(path))...)
	case path == tables.Path && method == "POST": // of this machine, but without the token
		return []try{{method, path, "{}", nil}, {method, path, `{"source":"twilio","kind":"calls"}`, nil}}
	case path == "/-/webhooks/{name}":
		return []try{{method, "/-/webhooks/none", `{"after":0}`, []string{"Content-Type", "application/json"}}}
	case path == "/-/profile/allocs", path == "/-/profile/cpu":
		return append(g.reading(method, path+"?for=100ms&format=json"), try{"GET", path + "?for=100ms", "", nil})
	case path == "/-/slow":
		return append(g.reading(method, path), g.reading(method, path+"?format=json")...)
	case path == "/-/profile/kept/{id}":
		return g.reading(method, "/-/profile/kept/none")
	case strings.HasPrefix(path, "/-/") && !strings.Contains(path, "{"):
		return g.reading(method, path)
	case path == "/-/static/{file}":
		return g.reading(method, "/-/static/viewer.css")
	case strings.HasPrefix(path, rig.Version), strings.HasPrefix(path, "/v1/"):
		return g.dropInTries(method, path)
	case path == "/search/save":
		return []try{{method, path, "q=-zzz&narrow=kind%3Acalls&name=everything&shared=1", nil}, {method, path, "q=%28&name=broken", nil}, {method, path, "q=price%3E0&name=dear", nil}}
	case path == "/search/view":
		return []try{{method, path, "view=table&back=%2Fsearch", nil}, {method, path, "view=rows", nil}}
	case path == "/search/forget":
		return []try{{method, path, "name=none&back=%2Fsearch", nil}}
	case strings.HasPrefix(path, "/search/sums"):
		return g.sumTries(method, "/search/sums")
	case path == "/-/search":
		return append(g.reading(method, path), append(g.sumTries(method, path), g.reading(method, path+"?sum=count&by=to&kind=calls&format=csv")...)...)
	case strings.HasPrefix(path, "/search"):
		var all []try
		for _, what := range []string{
			g.id(g.spec.Kind("calls"), 1), g.id(g.spec.Kind("participants"), 1), "%2B15005550006", "CA", "what", "-zzz", "-zzz&sort=rank", "-zzz&sort=oldest",
			"kind:calls&narrow=has:price", "has:body", "-zzz&kind=messages", "body:a*", "price%3E0", "status:(",
		} {
			all = append(all, g.reading(method, path+what)...)
		}
		return all
	case !strings.Contains(path, "{"):
		return g.reading(method, path)
	case strings.HasPrefix(path, "/{source}/number/"):
		at := strings.NewReplacer("{source}", "twilio", "{number}", "+15005550006", "{other}", "+15005550001").Replace(path)
		return g.reading(method, at)
	case path == "/-/media/{token}": // those a page names are asked for besides
		return g.reading(method, "/-/media/forged.token")
	case strings.HasPrefix(path, "/{source}/{kind}"):
		return g.viewerTries(method, path)
	}
	return nil
}

// sumTries ask for sums of every sort, those that name what is hidden among them.
func (g *garden) sumTries(method, path string) (all []try) {
	for _, query := range []string{
		"sum=count&by=day", "sum=count&by=kind", "kind=messages&sum=price&by=day", "kind=messages&sum=price&by=status", "kind=messages&sum=count&by=to", "kind=messages&sum=count&by=from.country",
		"kind=calls&sum=price&by=to", "kind=calls&sum=duration&by=from&by=day", "kind=calls&sum=wait&by=status", "kind=messages&sum=delivery&by=to.country", "kind=messages&q=-zzz&sum=count&by=error_code",
		"kind=messages&q=price%3E0&sum=count", "q=idle:1d&sum=count", "kind=calls&q=to.country:US&sum=count", "kind=messages&sum=body", "kind=messages&sum=count&by=body", "q=status:(&sum=count",
	} {
		all = append(all, g.reading(method, path+"?"+query)...)
	}
	return all
}

// formOf is a form for a POST; a GET has none.
func formOf(method, form string) string {
	if method == "GET" {
		return ""
	}
	return form
}

// reading asks as a program and a browser do: plain, and in some of the ways it
// may be asked for besides: packed and in pieces, less its body, anew. Every role
// asks in the same ways.
func (g *garden) reading(method, path string) []try {
	if method != "GET" {
		return []try{{method, path, "", nil}}
	}
	all := []try{{"GET", path, "", nil}}
	for i, besides := range []try{
		{"GET", path, "", []string{"Accept-Encoding", "gzip", "Accept", "text/html", "Prefer", ""}}, // in pieces, as they come
		{"HEAD", path, "", nil},
		{"GET", path, "", []string{"Cache-Control", "no-cache", "Range", "bytes=0-99"}},
	} {
		if g.some(4, fmt.Sprint(path, i)) {
			all = append(all, besides)
		}
	}
	return all
}

func (g *garden) viewerTries(method, path string) []try {
	var all []try
	for _, k := range g.spec.Kinds {
		at := strings.NewReplacer("{source}", "twilio", "{kind}", k.Name).Replace(path)
		switch {
		case strings.Contains(at, "{id}"):
			for _, id := range g.ids(k) {
				one := strings.ReplaceAll(at, "{id}", id)
				all = append(all, g.reading(method, one)...)
				if len(k.ID) > 0 { // what is known of it, now and at once
					moment := time.Now().UTC().Format(time.RFC3339Nano)
					all = append(all, try{method, one + "?understudy.as_of=" + moment, "", nil}, try{method, one + "?compare=2150-01-01T00:00:00Z..2151-01-01T00:00:00Z", "", nil})
				}
			}
		default:
			for i, l := range k.Lists {
				slug := ""
				if i > 0 {
					slug = "understudy.list=" + strings.ReplaceAll(strings.ToLower(l.Title), " ", "-")
				}
				for _, v := range pathVariable.FindAllString(l.Path, -1) {
					if name := strings.Trim(v, "{}"); g.spec.Vars[name] == "" {
						slug = strings.TrimPrefix(slug+"&"+name+"="+g.variable(name), "&")
					}
				}
				for i, query := range append(g.queriesOf(k, l), arranged(k)...) {
					if i > 2 && !g.some(2, at+slug+query) {
						continue
					}
					if slug != "" {
						query = "?" + slug + strings.Replace(query, "?", "&", 1)
					}
					all = append(all, g.reading(method, at+query)...)
				}
			}
		}
	}
	if pathVariable.MatchString(all[0].path) {
		return nil
	}
	return all
}

// actionTries ask for every action of the spec. A form with a key is sent for what is not
// there, or lacks something, so that nothing that is planted goes and nothing comes.
func (g *garden) actionTries(method, path string) (all []try) {
	const filled = "step=do&From=%2B15005550006&To=&Body=hi"
	for _, k := range g.spec.Kinds {
		for _, a := range k.Actions {
			at := strings.NewReplacer("{source}", "twilio", "{kind}", k.Name, "{action}", a.Name).Replace(path)
			ids := []string{""}
			if makes := a.CreationList() != nil; makes == strings.Contains(at, "{id}") {
				continue
			} else if !makes {
				ids = g.ids(k)
			}
			for i, id := range ids {
				one := strings.ReplaceAll(at, "{id}", id)
				if method == "GET" {
					all = append(all, g.reading(method, one)...)
					continue
				}
				all = append(all, try{method, one, "key=none&" + filled, nil})
				if i == 0 {
					all = append(all, try{method, one, "key=" + strings.Repeat("A", 26) + "&" + filled, nil})
				}
			}
		}
	}
	return all
}

// arranged are the queries of a list that is sorted, counted or searched: by what
// some roles do not see, too. What is looked for is said again on the page, so no
// marker is.
func arranged(k *spec.Kind) []string {
	all := []string{"?understudy.form=columns", "?understudy.form=columns&understudy.q=has:body", "?understudy.form=rows", "?understudy.q=-zzz", "?understudy.q=(", "?understudy.narrow=has:price&understudy.narrow=has:body"}
	classes := map[string]bool{}
	for _, f := range k.Fields {
		if f.Type != spec.TypeMap && f.Type != spec.TypeMedia && !classes[f.Class] { // one of each class
			classes[f.Class] = true
			all = append(all, "?understudy.sort="+f.Name, "?understudy.q=has:"+f.Name+"&understudy.sort=-"+f.Name)
		}
	}
	return all
}

// dropInTries asks a path of the spec in every way.
func (g *garden) dropInTries(method, path string) []try {
	var all []try
	for _, k := range g.spec.Kinds {
		for _, l := range k.Lists {
			if l.Path == path {
				for _, query := range g.queriesOf(k, l) {
					all = append(all, g.reading(method, g.fill(path, nil, "")+query)...)
				}
			}
		}
		for _, in := range k.Instances {
			if in.Path == path {
				for _, id := range g.ids(k) {
					all = append(all, g.reading(method, g.fill(path, in.ID, id))...)
				}
			}
		}
		for _, m := range k.Media {
			if m.Path == path {
				for _, id := range g.ids(k) {
					all = append(all, g.reading(method, g.fill(path, m.ID, id))...)
				}
			}
		}
	}
	return all
}

// beside are requests to no route of any table.
func beside(f frontend) []try {
	all := []try{
		{"GET", "/nowhere", "", nil}, {"GET", "/twilio/nothing", "", nil}, {"GET", "/elsewhere/calls", "", nil}, {"GET", "/-/nothing", "", nil},
		{"POST", "/-/nodes/poke", "", nil}, {"POST", "/-/nodes/poke", "", []string{"Understudy-Node", "1700000000:00"}}, {"GET", "/-/nodes/poke", "", nil},
		{"GET", rig.Base + "/Balance.json", "", nil}, {"GET", rig.Base + "/Calls", "", nil}, {"GET", rig.Base + "/Calls.csv", "", nil}, {"GET", rig.Base + "/Calls.json/", "", nil},
		{"OPTIONS", rig.Base + "/Calls.json", "", nil}, {"PUT", rig.Base + "/Calls.json", "", nil}, {"DELETE", rig.Base + "/Messages/SM00.json", "", nil},
		{"POST", rig.Base + "/Calls.json", "To=1&From=2", nil}, {"POST", "/twilio/calls", "a=b", nil},
	}
	return append(all, try{"GET", "/", "", []string{"Host", "elsewhere.example"}}, try{"TRACE", "/", "", nil})
}

// sight is what one credential saw.
type sight struct {
	seen  map[string]marker // markers in what was sent
	tags  map[string]string // ETags by frontend and path
	count map[string]int    // answers by status
	done  map[string]int    // answers by route
	good  map[string]bool   // requests answered with a success
	media map[string]string // contents a page named, and the cookie that opens them
}

// mediaLink is the address of a content as a page names it.
var mediaLink = regexp.MustCompile(`/-/media/[^"' ?<>\\]+`)
