// Reads by POST: an API like Slack's by a spec alone, with its SDK, and a GraphQL one.

package sdk

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const chatSpec = `name: chat
hosts: [{url: "https://chat.example.com"}]
auth: {style: bearer}
paging: {style: token, next: response_metadata.next_cursor, cursor: cursor, size: limit, default_size: 100}
pagings:
  issues:
    style: token
    cursor: variables.after
    next: data.repository.issues.pageInfo.endCursor
    more: data.repository.issues.pageInfo.hasNextPage
    size: variables.first
errors: {bodies: [{field: ok, in: ["false"]}, {field: errors}]}
kinds:
  - name: channels
    id: [id]
    lists: [{path: /api/conversations.list, key: channels, post: form, filters: [{name: types}]}]
    fields: [{name: id}, {name: name}]
    writes: [/api/conversations.rename]
  - name: messages
    lists: [{path: /api/conversations.history, key: messages, post: form, filters: [{name: channel}]}]
    fields: [{name: ts, type: epoch}, {name: text, class: body}]
  - name: issues
    id: [id]
    lists:
      - path: /graphql
        key: data.repository.issues.nodes
        post: graphql
        paging: issues
        document: 'query Issues($first: Int, $after: String) { repository(owner: "o", name: "r") { issues(first: $first, after: $after) {
          nodes { id title } pageInfo { endCursor hasNextPage } } } }'
    fields: [{name: id}, {name: title}]
    mutations: [retitle]
`

// chat is a made-up API that is asked by POST.
type chat struct {
	mu    sync.Mutex
	name  string // of channel C1, and the title of every issue
	asked []string
}

func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPost {
		http.Error(w, `{"ok":false,"error":"only_post"}`, http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/graphql" {
		c.graph(w, r)
		return
	}
	if err := r.ParseForm(); err != nil || r.URL.RawQuery != "" {
		fmt.Fprint(w, `{"ok":false,"error":"invalid_form_data"}`)
		return
	}
	c.asked = append(c.asked, r.URL.Path+" "+r.PostForm.Encode())
	from, _ := strconv.Atoi(r.PostForm.Get("cursor"))
	limit, _ := strconv.Atoi(r.PostForm.Get("limit"))
	rows, key := []string{}, "channels"
	for i := 1; i <= 5; i++ {
		row := fmt.Sprintf(`{"id":"C%d","name":%q}`, i, c.name)
		if strings.HasSuffix(r.URL.Path, "history") {
			row, key = fmt.Sprintf(`{"ts":"%d.000100","text":"message %d"}`, 1_700_000_000-i, i), "messages"
		}
		rows = append(rows, row)
	}
	switch {
	case r.URL.Path == "/api/conversations.rename":
		c.name = r.PostForm.Get("name")
		fmt.Fprint(w, `{"ok":true}`)
		return
	case key == "messages" && r.PostForm.Get("channel") != "C1":
		fmt.Fprint(w, `{"ok":false,"error":"channel_not_found"}`)
		return
	}
	next, to := "", min(from+limit, len(rows))
	if to < len(rows) {
		next = strconv.Itoa(to)
	}
	fmt.Fprintf(w, `{"ok":true,%q:[%s],"response_metadata":{"next_cursor":%q}}`, key, strings.Join(rows[from:to], ","), next)
}

func (c *chat) graph(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query     string
		Variables struct {
			First int
			After string
			Title string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, `{"errors":[{}]}`, http.StatusBadRequest)
		return
	}
	c.asked = append(c.asked, fmt.Sprintf("/graphql %d %s", in.Variables.First, in.Variables.After))
	switch {
	case strings.HasPrefix(in.Query, "mutation"):
		c.name = in.Variables.Title
		fmt.Fprint(w, `{"data":{"retitle":{"id":"I_1"}}}`)
		return
	case in.Variables.First == 0:
		fmt.Fprint(w, `{"data":null,"errors":[{"message":"first is missing"}]}`)
		return
	}
	from, _ := strconv.Atoi(in.Variables.After)
	to, rows := min(from+in.Variables.First, 5), []string{}
	for i := from + 1; i <= to; i++ {
		rows = append(rows, fmt.Sprintf(`{"id":"I_%d","title":%q}`, i, c.name))
	}
	fmt.Fprintf(w, `{"data":{"repository":{"issues":{"nodes":[%s],"pageInfo":{"endCursor":"%d","hasNextPage":%v}}}}}`,
		strings.Join(rows, ","), to, to < 5)
}

func TestReadsByPost(t *testing.T) {
	t.Parallel()
	c := &chat{name: "general"}
	up := httptest.NewServer(c)
	defer up.Close()
	dir := t.TempDir()
	const token = "xoxb-a-token-of-the-bot-567"
	for name, text := range map[string]string{"chat.yaml": chatSpec, "chat.token": "upstreamtoken-1234", "bot.secret": token,
		"understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  chat: {spec: ./chat.yaml, upstream: "` + up.URL + `", secret: "file:chat.token", listen: "127.0.0.1:0", polls: []}
credentials:
  - {name: bot, source: chat, secret: "file:bot.secret", role: all, allow: ["POST /api/conversations.rename", "POST /graphql"]}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	asked := func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.asked)
	}
	walk := func(address string) string {
		out, err := exec.Command("node", "../sdks/node/chat.mjs", address, token).CombinedOutput()
		if err != nil {
			t.Fatalf("@slack/web-api: %v\n%s", err, out)
		}
		return string(out)
	}
	want := walk(up.URL)
	before := asked()
	cold := walk(house.URL("chat"))
	first := asked() - before
	warm := walk(house.URL("chat"))
	checktest.Equal(t, cold, want, "directly: cold")
	checktest.Equal(t, warm, want, "directly: warm")
	checktest.Contains(t, want, "C5 general", "directly: want")
	checktest.Contains(t, want, "channel_not_found", "directly: want")
	if again := asked() - before - first; first != before || again != 1 {
		t.Errorf("%d requests directly, %d cold, %d warm: the error alone is asked for again", before, first, again)
	}

	post := func(path, contentType, body string) rig.Reply {
		t.Helper()
		r, err := rig.Ask(http.MethodPost, "", house.URL("chat")+path, body, "Authorization", "Bearer "+token, "Content-Type", contentType)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const form, object = "application/x-www-form-urlencoded", "application/json"
	if r := post("/api/conversations.rename", form, "channel=C1&name=lobby"); r.Status != http.StatusOK {
		t.Errorf("a write: %d %s", r.Status, r.Body)
	}
	if r := post("/api/conversations.list", form, "limit=2&types=public_channel"); !strings.Contains(string(r.Body), "lobby") {
		t.Errorf("after a write: %s", r.Body)
	}

	graph := func(document, variables string) rig.Reply {
		text, _ := json.Marshal(document)
		return post("/graphql", object, fmt.Sprintf(`{"query":%s,"variables":%s}`, text, variables))
	}
	const issues = `query Issues($first: Int, $after: String) {
		repository(owner: "o", name: "r") { issues(first: $first, after: $after) { nodes { id, title } pageInfo { endCursor, hasNextPage } } } }`
	before = asked()
	var seen []string
	for after := `null`; after != ""; {
		r := graph(issues, `{"first":2,"after":`+after+`}`)
		if again := graph(issues, `{"after":`+after+`,"first":2}`); string(again.Body) != string(r.Body) {
			t.Errorf("asked again: %s", again.Body)
		}
		var page struct {
			Data struct {
				Repository struct {
					Issues struct {
						Nodes    []struct{ ID string }
						PageInfo struct {
							EndCursor   string
							HasNextPage bool
						}
					}
				}
			}
		}
		if err := json.Unmarshal(r.Body, &page); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
		in := page.Data.Repository.Issues
		for _, n := range in.Nodes {
			seen = append(seen, n.ID)
		}
		if after = ""; in.PageInfo.HasNextPage {
			after = strconv.Quote(in.PageInfo.EndCursor)
		}
	}
	c.mu.Lock()
	queries := slices.Clone(c.asked[before:])
	c.mu.Unlock()
	// What the channel that was renamed has made old may be asked for again meanwhile.
	queries = slices.DeleteFunc(queries, func(asked string) bool { return !strings.HasPrefix(asked, "/graphql ") })
	if !slices.Equal(seen, []string{"I_1", "I_2", "I_3", "I_4", "I_5"}) || len(queries) != 3 {
		t.Errorf("a walk saw %v by %q", seen, queries)
	}
	for name, mutation := range map[string]string{ // clients choose the names of operations
		"named": "mutation M($title: String) { retitle(title: $title) { id } }", "anonymous": "mutation($title: String) { x: retitle(title: $title) { id } }",
	} {
		if r := graph(mutation, `{"title":"`+name+`"}`); r.Status != http.StatusOK {
			t.Errorf("a mutation that is %s: %d %s", name, r.Status, r.Body)
		}
		if r := graph(issues, `{"first":2,"after":null}`); !strings.Contains(string(r.Body), `"`+name+`"`) {
			t.Errorf("after a mutation that is %s: %s", name, r.Body)
		}
	}
	for range 2 {
		before = asked()
		if r := graph(issues, `{"first":0}`); !strings.Contains(string(r.Body), "first is missing") || asked() != before+1 {
			t.Errorf("an error: %s, asked %d times", r.Body, asked()-before)
		}
	}
}

// A body that says that it is too long is refused before its sender is invited to send it.
func TestTooLongBodiesAreNotInvited(t *testing.T) {
	t.Parallel()
	s := rig.StartTunnels(t, "")
	for path, url := range map[string]string{"/graphql": s.URL("github"), "/-/batch": s.URL("github"), "/-/mcp": s.URL("viewer")} {
		user := "x:" + rig.ProgramSecret
		if path == "/-/mcp" {
			user = rig.Account + ":" + rig.DemoToken
		}
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(rig.Patience))
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: 300000\r\n\r\n", path, strings.TrimPrefix(url, "http://"),
			base64.StdEncoding.EncodeToString([]byte(user)))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(resp.Header.Get("Understudy-Error"), "larger than") {
			t.Errorf("%s: %s, %q", path, resp.Status, resp.Header.Get("Understudy-Error"))
		}
	}
}
