// Server: how the API answers.

package randomapitest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Path is that of the list.
func (a *API) Path() string { return a.config.base + "/" + a.Kind }

// ServeHTTP answers a request for the list or for one record.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	id, isRecord := strings.CutPrefix(r.URL.Path, a.Path()+"/")
	switch {
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed)
	case isRecord:
		a.answerRecord(w, id)
	case r.URL.Path == a.Path():
		a.move()
		a.answerList(w, r)
	default:
		refuse(w, http.StatusNotFound)
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	write(w, map[string]any{"error": http.StatusText(status)})
}

func write(w http.ResponseWriter, value any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // the client has gone
}

func (a *API) answerRecord(w http.ResponseWriter, id string) {
	for _, r := range a.visible() {
		if a.id(r) == id {
			write(w, a.row(r))
			return
		}
	}
	refuse(w, http.StatusNotFound)
}

// row is a record as JSON.
func (a *API) row(r record) map[string]any {
	id := any(a.id(r))
	if a.Has(numberID) {
		id = json.Number(a.id(r))
	}
	at := time.Unix(1_700_000_000+60*int64(r.sequence), 0).UTC()
	return map[string]any{a.idName(): id, a.config.clock: at.Format(time.RFC3339), "name": fmt.Sprint("Name ", r.sequence), "status": "open"}
}

// page is one page of the list.
type page struct {
	from, to int // places in the list as it is now
	size     int
	rows     []record
	last     bool
}

func (a *API) answerList(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, ok := a.size(query)
	if !ok {
		refuse(w, http.StatusBadRequest)
		return
	}
	all := a.ordered()
	from, status := a.from(query, all, size)
	if status != 0 {
		refuse(w, status)
		return
	}
	if from >= len(all) && from > 0 {
		switch a.config.beyond {
		case errorBeyond:
			refuse(w, []int{400, 404}[a.config.full%2])
			return
		case lastPageAgain:
			from = (len(all) - 1) / size * size
		}
	}
	from = min(from, len(all))
	p := page{from: from, to: min(from+size, len(all)), size: size}
	for _, one := range all[p.from:p.to] {
		if !one.hidden {
			p.rows = append(p.rows, one)
		}
	}
	p.last = p.to == len(all)
	a.write(w, r, p, all)
}

// size is how many places the asked page has; not ok where the API refuses it.
func (a *API) size(query url.Values) (n int, ok bool) {
	if a.Has(wholeList) {
		return max(1, len(a.records)), true
	}
	asked, err := strconv.Atoi(query.Get(a.config.sizeParam))
	if err != nil || a.Has(sizeIgnored) {
		return a.config.full, !query.Has(a.config.sizeParam) || a.Has(sizeIgnored)
	}
	switch {
	case asked < 1:
		return 0, false
	case a.Has(sizeRefused):
		return asked, asked <= a.config.most
	case a.Has(sizeRounded) && asked <= 10:
		return 10, true
	case a.Has(sizeRounded) && asked <= 20:
		return 20, true
	case a.Has(sizeRounded):
		return 50, true
	case a.Has(sizeCapped):
		return min(asked, a.config.most), true
	}
	return asked, true
}

// from is the place where the asked page begins, or the status of a refusal.
func (a *API) from(query url.Values, all []record, size int) (from, status int) {
	text := query.Get(a.config.position)
	switch {
	case a.config.position == "" || text == "":
		return 0, 0
	case slices.Contains(tokenPagings, a.habits["paging"]):
		return a.fromToken(text, all)
	case a.Has(lastID):
		return a.fromID(text, all)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, http.StatusBadRequest
	}
	if slices.Contains(pagePagings, a.habits["paging"]) {
		return max(0, n-a.config.first) * size, 0
	}
	return n, 0
}

// fromID is the place behind a record. Of one that is deleted some APIs still know it.
func (a *API) fromID(id string, all []record) (from, status int) {
	if i := slices.IndexFunc(all, func(r record) bool { return a.id(r) == id && !r.hidden }); i >= 0 {
		return i + 1, 0
	}
	sequence, deleted := a.walk.deleted[id]
	if a.config.gone != 0 || !deleted {
		return 0, max(a.config.gone, http.StatusBadRequest)
	}
	return a.behind(sequence, all), 0
}

// behind is the first place behind that of a sequence.
func (a *API) behind(sequence int, all []record) int {
	i := slices.IndexFunc(all, func(r record) bool {
		return r.sequence != sequence && r.sequence < sequence == a.Has(newestFirst)
	})
	if i < 0 {
		return len(all)
	}
	return i
}

// deadTokens are the statuses of tokens that have ended.
var deadTokens = map[string]int{tokensDie400: 400, tokensDie403: 403, tokensDie404: 404, tokensDie410: 410, tokensDie422: 422,
	tokensTooShort: 400}

func (a *API) fromToken(text string, all []record) (from, status int) {
	t, known := a.tokens[text]
	if !known {
		return 0, http.StatusBadRequest
	}
	if a.walk.tokenAsked++; a.walk.begun && a.Has(tokensTooShort) && a.walk.tokenAsked%2 == 0 {
		a.walk.generation++
	}
	if t.generation != a.walk.generation {
		return 0, deadTokens[a.habits["life"]]
	}
	return a.behind(t.behind, all), 0
}

// tokenBehind is the token of what stands behind a page.
func (a *API) tokenBehind(p page, all []record) string {
	t := token{a.walk.generation, -1}
	if p.to > 0 {
		t.behind = all[p.to-1].sequence
	}
	h := fnv.New64a()
	fmt.Fprint(h, a.Number, t.generation, t.behind)
	sum := h.Sum(nil)
	text := "c" + hex.EncodeToString(sum)
	switch a.habits["token"] {
	case tokenDigits:
		text = fmt.Sprint(10_000_000 + h.Sum64()%80_000_000)
	case tokenEscaped:
		text = base64.StdEncoding.EncodeToString(append([]byte{0xfb, 0xef, 0xbf}, sum...))
	}
	a.tokens[text] = t
	return text
}

// next is the value of the position's parameter of the page behind a page.
func (a *API) next(p page, all []record) string {
	switch {
	case slices.Contains(tokenPagings, a.habits["paging"]):
		return a.tokenBehind(p, all)
	case slices.Contains(pagePagings, a.habits["paging"]):
		return strconv.Itoa(p.from/p.size + 1 + a.config.first)
	}
	return strconv.Itoa(p.to)
}

// link is the address of the page behind a page.
func (a *API) link(r *http.Request, next string) string {
	query := r.URL.Query()
	query.Set(a.config.position, next)
	link := a.Path() + "?" + query.Encode()
	if a.Has(absoluteLink) || a.Has(absoluteLinkToken) || a.Has(linkHeader) || a.Has(linkHeaderToken) {
		link = "http://" + r.Host + link
	}
	return link
}
