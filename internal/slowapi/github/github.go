// GitHub: the API as a whole: credentials, limits, versions, conditions.

// Package github is a made-up part of GitHub's REST API: repositories with issues,
// pull requests, comments, labels, commits and releases.
package github

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

//go:embed shapes
var files embed.FS

// API is GitHub's API over one world.
type API struct {
	world   *table.World
	builder builder
	routes  table.Routes
	knows   func(token string) bool
	limits  limits
	asked   sync.Map // repositories whose statistics were asked for: they are there now
}

// New makes a world of so many issues. knows tells whether a token is the account's.
func New(w *table.World, knows func(token string) bool) *table.API {
	w.Begin("users", "repos", "labels", "issues", "comments", "commits", "releases")
	a := &API{
		world:   w,
		builder: builder{world: w, shapes: table.ParseAll(files, "shapes"), numbers: map[string]int{}, heads: map[string]string{}},
		knows:   knows, limits: limits{set: usual, now: w.Now},
	}
	a.routes = a.paths()
	a.builder.seed()
	next := w.Records
	a.world.Creators["issues"] = func(now int64) { a.builder.issue(next, now); next++ }
	a.world.Creators["commits"] = func(now int64) { a.builder.commit(next, now); next++ }
	a.world.CheckEdit = a.edit
	control := a.world.Controls()
	control["/-/limits"] = a.limits.replace
	return &table.API{Routes: a.routes, Answer: a.answer, Refuse: a.refusal, Control: control}
}

// answer answers one request.
func (a *API) answer(r *http.Request, body []byte, unread int, here string) format.Answer {
	if unread != 0 {
		return a.refusal(unread)
	}
	token, _ := credential(r)
	if !a.knows(token) {
		return a.refusal(http.StatusUnauthorized)
	}
	path := r.URL.Path
	if refused := a.limits.take(path); refused != nil {
		return a.signed(*refused, path)
	}
	if v := r.Header.Get("X-Github-Api-Version"); v != "" && v != apiVersion && v != "2026-03-10" {
		return a.signed(refuse(http.StatusBadRequest, "API version "+strconv.Quote(v)+" is not supported", ""), path)
	}
	q := a.routes.Request(r, body, here)
	if q == nil || q.Route.Handlers[q.Method] == nil {
		return a.refusal(http.StatusNotFound) // what GitHub says of a method that a path does not take, too
	}
	answer := a.world.Run(q, q.Route.Handlers[q.Method])
	if q.Method == http.MethodGet && answer.Status == http.StatusOK {
		sum := sha256.Sum256(answer.Body)
		answer = with(answer, "Etag", `W/"`+hex.EncodeToString(sum[:])+`"`)
		if matches(r.Header.Get("If-None-Match"), answer.Header["Etag"]) {
			a.limits.back(path) // a 304 costs nothing
			answer.Status, answer.Body = http.StatusNotModified, nil
		}
	}
	return a.signed(answer, path)
}

const apiVersion = "2022-11-28"

// credential is the token of a request: Authorization with token or Bearer, or
// Basic, with the token as password or as user without one.
func credential(r *http.Request) (token string, ok bool) {
	if user, password, basic := r.BasicAuth(); basic {
		if password == "" || password == "x-oauth-basic" {
			return user, true
		}
		return password, true
	}
	sort, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(sort, "token") && !strings.EqualFold(sort, "bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}

// matches compares weakly, as RFC 9110 wants for If-None-Match.
func matches(asked, tag string) bool {
	for one := range strings.SplitSeq(asked, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || one != "" && strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// with is an answer with one more header field.
func with(a format.Answer, name, value string) format.Answer {
	header := map[string]string{}
	maps.Copy(header, a.Header)
	header[name] = value
	a.Header = header
	return a
}

// signed adds what every answer of GitHub carries to that of a path.
func (a *API) signed(answer format.Answer, path string) format.Answer {
	header := map[string]string{}
	if answer.Status != http.StatusNoContent {
		header["Content-Type"] = "application/json; charset=utf-8"
	}
	header["X-Github-Media-Type"] = "github.v3; format=json"
	header["X-Github-Api-Version-Selected"] = apiVersion
	d := fake.Rng(a.world.Now().UnixNano())
	header["X-Github-Request-Id"] = strings.ToUpper(string(d.Hex(nil, 2)) + ":" + string(d.Hex(nil, 8)))
	header["X-Oauth-Scopes"] = "gist, read:org, repo"
	header["Cache-Control"] = "private, max-age=60, s-maxage=60"
	header["Vary"] = "Accept, Authorization, Cookie, X-GitHub-OTP, Accept-Encoding, Accept, X-Requested-With"
	maps.Copy(header, answer.Header)
	maps.Copy(header, a.limits.header(path))
	answer.Header = header
	return answer
}

// refuse is an error in GitHub's form. Errors are members of "errors".
func refuse(status int, message, about string, errors ...map[string]string) format.Answer {
	if about == "" {
		about = "https://docs.github.com/rest"
	}
	body := map[string]any{"message": message, "documentation_url": about}
	if body["status"] = strconv.Itoa(status); len(errors) > 0 {
		delete(body, "status") // as the document has validation errors
		body["errors"] = errors
	}
	raw, _ := json.Marshal(body) // of texts: never fails
	return format.Answer{Status: status, Body: raw}
}

// invalid is the error of a parameter, in GitHub's form.
func invalid(resource, field, code string) format.Answer {
	return refuse(http.StatusUnprocessableEntity, "Validation Failed", "", map[string]string{"resource": resource, "field": field,
		"code": code})
}

// refusal is GitHub's error for a status.
func (a *API) refusal(status int) format.Answer {
	message, known := map[int]string{
		http.StatusUnauthorized: "Bad credentials", http.StatusNotFound: "Not Found", http.StatusForbidden: "Resource not accessible",
		http.StatusBadRequest: "Problems parsing JSON", http.StatusTooManyRequests: secondaryText, http.StatusInternalServerError: "Server Error",
	}[status]
	if !known {
		message = http.StatusText(status)
	}
	answer := refuse(status, message, "")
	if status == http.StatusTooManyRequests {
		answer = with(answer, "Retry-After", "1")
	}
	return a.signed(answer, "")
}
