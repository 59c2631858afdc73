// The GitHub API: credentials, rate limits, versions, conditional requests and errors.

// Package github imitates a part of GitHub's REST API: repositories with issues, pull requests,
// comments, labels, commits and releases.
package github

import (
	"cmp"
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
var shapeFiles embed.FS

// API answers requests to GitHub's API from one simulated world.
type API struct {
	world          *table.World
	builder        builder
	routes         table.Routes
	isToken        func(token string) bool
	limits         limits
	requestedStats sync.Map // the ids of the repositories whose statistics were requested before, which is when GitHub computes them
}

// New generates a simulated world that has w.Records issues. isToken reports whether a token is valid.
func New(w *table.World, isToken func(token string) bool) *table.API {
	w.Begin("users", "repos", "labels", "issues", "comments", "commits", "releases")
	a := &API{
		world: w,
		builder: builder{
			world: w, shapes: table.ParseAll(shapeFiles, "shapes"), newestIssues: map[string]int{}, newestCommits: map[string]string{},
		},
		isToken: isToken, limits: limits{bounds: defaultBounds, now: w.Now},
	}
	a.routes = a.paths()
	a.builder.generate()
	next := w.Records
	a.world.Creators["issues"] = func(now int64) { a.builder.generateIssue(next, now); next++ }
	a.world.Creators["commits"] = func(now int64) { a.builder.generateCommit(next, now); next++ }
	a.world.CheckEdit = a.readEdit
	control := a.world.Controls()
	control["/-/limits"] = a.limits.replace
	return &table.API{Routes: a.routes, Answer: a.answer, Refuse: a.refusal, Control: control}
}

// answer answers a request. It is the field Answer of table.API.
func (a *API) answer(r *http.Request, body []byte, unread int, baseURL string) format.Answer {
	if unread != 0 {
		return a.refusal(unread)
	}
	token, _ := credential(r)
	if !a.isToken(token) {
		return a.refusal(http.StatusUnauthorized)
	}
	path := r.URL.Path
	if refused := a.limits.take(path); refused != nil {
		return a.withHeaders(*refused, path)
	}
	if v := r.Header.Get("X-Github-Api-Version"); v != "" && v != apiVersion && v != "2026-03-10" {
		return a.withHeaders(refuse(http.StatusBadRequest, "API version "+strconv.Quote(v)+" is not supported", ""), path)
	}
	q := a.routes.Request(r, body, baseURL)
	if q == nil || q.Route.Handlers[q.Method] == nil {
		return a.refusal(http.StatusNotFound) // GitHub also answers 404 if the path exists but not with this method
	}
	answer := a.world.Run(q, q.Route.Handlers[q.Method])
	if q.Method == http.MethodGet && answer.Status == http.StatusOK {
		sum := sha256.Sum256(answer.Body)
		answer = withHeader(answer, "Etag", `W/"`+hex.EncodeToString(sum[:])+`"`)
		if matchETag(r.Header.Get("If-None-Match"), answer.Header["Etag"]) {
			a.limits.refund(path) // a 304 response does not count for the rate limit
			answer.Status, answer.Body = http.StatusNotModified, nil
		}
	}
	return a.withHeaders(answer, path)
}

const apiVersion = "2022-11-28" // the API version that every response names

// credential returns the token of a request. It is in the header Authorization after "token" or "Bearer", or in Basic
// credentials as the password, or if there is no password, as the user.
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

// matchETag reports whether the header If-None-Match contains an entity tag. It uses weak comparison (RFC 9110).
func matchETag(ifNoneMatch, tag string) bool {
	for candidate := range strings.SplitSeq(ifNoneMatch, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || candidate != "" && strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// withHeader returns the answer with one more header field.
func withHeader(a format.Answer, name, value string) format.Answer {
	header := map[string]string{}
	maps.Copy(header, a.Header)
	header[name] = value
	a.Header = header
	return a
}

// withHeaders returns the answer with the headers that all of GitHub's responses have, such as the state of the rate
// limit for the path.
func (a *API) withHeaders(answer format.Answer, path string) format.Answer {
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

// refuse returns an error response in GitHub's format. about is the URL of the documentation, and errors are the
// elements of the member "errors".
func refuse(status int, message, about string, errors ...map[string]string) format.Answer {
	about = cmp.Or(about, "https://docs.github.com/rest")
	body := map[string]any{"message": message, "documentation_url": about}
	if body["status"] = strconv.Itoa(status); len(errors) > 0 {
		delete(body, "status") // GitHub's errors about invalid fields have no member "status"
		body["errors"] = errors
	}
	raw, _ := json.Marshal(body) // encoding cannot fail, because all values are strings
	return format.Answer{Status: status, Body: raw}
}

// newInvalid returns the error response for a field that is not valid.
func newInvalid(resource, field, code string) format.Answer {
	return refuse(http.StatusUnprocessableEntity, "Validation Failed", "", map[string]string{"resource": resource, "field": field,
		"code": code})
}

// refusal returns GitHub's error response for a status.
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
		answer = withHeader(answer, "Retry-After", "1")
	}
	return a.withHeaders(answer, "")
}
