// The server of a random API.

package infer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ServeHTTP is the API.
func (a *drawnAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, basic := r.BasicAuth()
	if a.refuses(w) {
		return
	}
	switch {
	case a.auth == "basic" && (!basic || user != "me" || password != "secret1"),
		strings.HasPrefix(a.auth, "bearer") && r.Header.Get("Authorization") != "Bearer secret1",
		a.auth == "header X-Api-Key" && r.Header.Get("X-Api-Key") != "secret1", a.auth == "query api_key" &&
			r.URL.Query().Get("api_key") != "secret1",
		strings.HasSuffix(a.auth, " X-App") && r.Header.Get("X-App") != "secret1":
		w.WriteHeader(http.StatusUnauthorized)
		return
	case a.version != "" && r.Header.Get("X-Api-Version") != a.version,
		a.told.media != "application/json" && r.Header.Get("Accept") != a.told.media:
		a.fail(w, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", a.told.media)
	w.Header().Set(a.told.request, "r1")
	path := strings.TrimPrefix(r.URL.Path, a.base+"/"+a.kind)
	if id, ok := strings.CutPrefix(path, "/"); ok {
		for _, row := range a.rows {
			if fmt.Sprint(row[a.id]) == id {
				_ = json.NewEncoder(w).Encode(row)
				return
			}
		}
	}
	if path != "" {
		a.fail(w, http.StatusNotFound)
		return
	}
	a.list(w, r.URL.Query())
}

// list answers with one page.
func (a *drawnAPI) list(w http.ResponseWriter, query url.Values) {
	n := a.full
	if size, err := strconv.Atoi(query.Get(a.size)); err == nil {
		n = min(size, a.most)
	}
	from, err := strconv.Atoi(query.Get(a.page))
	switch {
	case a.style == "none":
		from, n = 0, len(a.rows)
	case a.style == "cursor":
		from = 1 + slices.IndexFunc(a.rows, func(row object) bool { return fmt.Sprint(row[a.id]) == query.Get(a.page) })
	case strings.HasPrefix(a.style, "token"):
		from = 0
		if token, ok := strings.CutPrefix(query.Get(a.page), "tok"); ok {
			from, _ = strconv.Atoi(token)
		}
	case a.style != "offset":
		if err != nil {
			from = a.first
		}
		from = (from - a.first) * n
	}
	from = min(max(from, 0), len(a.rows))
	to := min(from+n, len(a.rows))
	rows := append([]object{}, a.rows[from:to]...)
	last := to == len(a.rows)
	link := fmt.Sprintf("%s/%s?%s", a.base, a.kind, url.Values{a.page: {strconv.Itoa(from/max(n, 1) + 1 + a.first)},
		a.size: {strconv.Itoa(n)}}.Encode())
	if a.absolute {
		link = a.server + link
	}
	envelope := object{}
	if a.told.good != "" {
		put(envelope, a.told.good, a.goodValue(true))
	}
	if a.told.object {
		put(envelope, "object", "list")
	}
	token := any("tok" + strconv.Itoa(to))
	if last {
		token = ""
	}
	switch {
	case a.style == "header" && !last:
		w.Header().Set("Link", "<"+link+`>; rel="next"`)
	case a.style == "body":
		put(envelope, a.next, link)
		if last {
			put(envelope, a.next, nil)
		}
	case a.style == "token":
		put(envelope, a.next, token)
	case a.style == "tokenheader" && !last:
		w.Header().Set("X-Next-Cursor", token.(string))
	}
	if a.more != "" {
		put(envelope, a.more, !last)
	}
	if name, ok := strings.CutPrefix(a.total, "header:"); ok {
		w.Header().Set(name, strconv.Itoa(len(a.rows)))
	} else if a.total != "" {
		put(envelope, a.total, len(a.rows))
	}
	if a.key == "" {
		_ = json.NewEncoder(w).Encode(rows)
		return
	}
	put(envelope, a.key, rows)
	_ = json.NewEncoder(w).Encode(envelope)
}
