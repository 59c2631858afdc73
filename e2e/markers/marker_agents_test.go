// Marker agents: what the tools of agents are asked in the test of markers.

package markers

import (
	"encoding/json"
	"strings"
	"time"
)

// agentTries call every tool for kinds of all sorts, by what some roles do not see, too.
func (g *garden) agentTries(method, path string) []try {
	headers := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	all := []try{
		{method, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headers}, {method, path, "{", headers},
		{method, path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers},
	}
	call := func(tool string, arguments map[string]any) {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call",
			"params": map[string]any{"name": tool, "arguments": arguments}})
		if err != nil {
			panic(err) // plain texts
		}
		if g.some(3, string(body)) {
			all = append(all, try{method, path, string(body), headers})
		}
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for _, k := range g.spec.Kinds {
		call("describe", map[string]any{"kind": k.Name})
		for _, l := range k.Lists {
			within := map[string]string{}
			for _, v := range pathVariable.FindAllString(l.Path, -1) {
				if name := strings.Trim(v, "{}"); g.spec.Vars[name] == "" {
					within[name] = g.variable(name)
				}
			}
			call("list", map[string]any{"kind": k.Name, "within": within, "limit": 100})
			call("as_of", map[string]any{"kind": k.Name, "within": within, "at": now})
			for _, f := range l.Filters {
				call("list", map[string]any{"kind": k.Name, "within": within, "filters": map[string]string{f.Name: "1"}})
			}
		}
		for _, id := range g.ids(k) {
			call("get", map[string]any{"kind": k.Name, "id": id})
			call("as_of", map[string]any{"kind": k.Name, "id": id, "at": now})
			call("history", map[string]any{"kind": k.Name, "id": id, "limit": 100})
		}
		call("search", map[string]any{"kinds": []string{k.Name}, "limit": 100})
	}
	for _, query := range []string{"-zzz", "has:body", "body:a*", "price>0", "status:(", "what"} {
		call("search", map[string]any{"query": query, "limit": 100})
		call("search", map[string]any{"query": query, "sort": "rank"})
		call("sums", map[string]any{"query": query, "sum": "price", "by": []string{"status", "day"}})
		call("sums", map[string]any{"query": query, "by": []string{"to"}})
	}
	return all
}
