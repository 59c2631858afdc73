// GraphQL: responses to the queries that the command gh sends.

package github

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// graphQL answers the GraphQL queries that gh sends. It recognizes a query by the names of its fields. The response
// always has all fields that gh requests anywhere.
func (a *API) graphQL(q *table.Request) format.Answer {
	var in struct {
		Query     string
		Variables struct {
			Owner, Name, Repo, EndCursor string
			Limit                        int
			States                       []string
			Input                        json.RawMessage
		}
	}
	if err := json.Unmarshal(q.Body, &in); err != nil {
		return a.refusal(http.StatusBadRequest)
	}
	v := &in.Variables
	if strings.Contains(in.Query, "createIssue(") {
		return a.createGraphQLIssue(q, v.Input)
	}
	if strings.Contains(in.Query, "viewer") {
		return graphQLData(map[string]any{"viewer": map[string]any{"login": a.world.Account}})
	}
	if asked := typeQuery.FindAllStringSubmatch(in.Query, -1); len(asked) > 0 {
		return describeTypes(asked)
	}
	repo := a.world.Kinds["repos"].Find(strings.ToLower(v.Owner + "/" + v.Name + v.Repo))
	if repo == nil || !strings.Contains(in.Query, "repository(") {
		return graphQLError("NOT_FOUND", "Could not resolve to a Repository with the name '"+v.Owner+"/"+v.Name+v.Repo+"'.")
	}
	shown := map[string]any{
		"id": repo.Values["node_id"], "name": repo.Values["name"], "description": repo.Values["description"], "hasIssuesEnabled": true,
		"owner": map[string]any{"id": repo.Values["node_id"], "login": v.Owner}, "viewerPermission": "ADMIN"}
	if strings.Contains(in.Query, "issues(") {
		rows := a.world.Kinds["issues"].Select(func(r *table.Row) bool {
			return r.Text("repo") == repo.ID && r.Values["pull_id"] == nil && slices.Contains(v.States, strings.ToUpper(r.Text("state")))
		}, "created", false)
		from, _ := strconv.Atoi(v.EndCursor)
		from = max(0, min(from, len(rows)))
		to, nodes := min(from+v.Limit, len(rows)), []any{}
		for _, r := range rows[from:to] {
			nodes = append(nodes, graphQLIssue(r))
		}
		shown["issues"] = map[string]any{"totalCount": len(rows), "nodes": nodes,
			"pageInfo": map[string]any{"hasNextPage": to < len(rows), "endCursor": strconv.Itoa(to)}}
	}
	return graphQLData(map[string]any{"repository": shown})
}

// typeQuery matches a question for the fields of a type, which gh asks servers that may be old: Issue: __type(name: "Issue"){fields…}
var typeQuery = regexp.MustCompile(`(\w+):\s*__type\(name:\s*"(\w+)"`)

// describeTypes names the fields of types: of an issue those that it has here, and of others none.
func describeTypes(asked [][]string) format.Answer {
	types := map[string]any{}
	for _, one := range asked {
		names := []any{}
		if one[2] == "Issue" {
			for _, name := range []string{"id", "number", "title", "url", "updatedAt", "state", "stateReason", "labels"} {
				names = append(names, map[string]string{"name": name})
			}
		}
		types[one[1]] = map[string]any{"fields": names}
	}
	return graphQLData(types)
}

// graphQLIssue returns an issue in the format of GitHub's GraphQL API.
func graphQLIssue(r *table.Row) map[string]any {
	labels := []any{}
	for _, p := range r.Values["labels"].([]table.Part) {
		labels = append(labels, map[string]any{"id": p.Values["node_id"], "name": p.Values["name"], "description": p.Values["description"],
			"color": p.Values["color"]})
	}
	return map[string]any{"id": r.Values["node_id"], "number": r.Values["number"], "title": r.Values["title"],
		"url": "https://github.com/" + r.Text("repo") + "/issues/" + r.Text("number"), "updatedAt": time.Unix(r.Number("updated"), 0).UTC(),
		"state": strings.ToUpper(r.Text("state")), "stateReason": "", "labels": map[string]any{"nodes": labels, "totalCount": len(labels)}}
}

// createGraphQLIssue creates an issue and returns its id and URL.
func (a *API) createGraphQLIssue(q *table.Request, input json.RawMessage) format.Answer {
	var in struct{ RepositoryID string }
	_ = json.Unmarshal(input, &in) // if this fails, the repository id is "", which no repository has
	found := a.world.Kinds["repos"].Select(func(r *table.Row) bool { return r.Text("node_id") == in.RepositoryID }, "", false)
	if len(found) == 0 {
		return graphQLError("NOT_FOUND", "Could not resolve to a node with the global id of '"+in.RepositoryID+"'")
	}
	var f fields
	if f.read(input, "") != nil {
		return graphQLError("UNPROCESSABLE", string(refuse(http.StatusBadRequest, "Problems parsing JSON", "").Body))
	}
	q.Parent = found[0]
	answer := a.createIssue(q, &f)
	var issue struct {
		Node string `json:"node_id"`
		URL  string `json:"html_url"`
	}
	if json.Unmarshal(answer.Body, &issue) != nil || answer.Status != http.StatusCreated {
		return graphQLError("UNPROCESSABLE", string(answer.Body))
	}
	return graphQLData(map[string]any{"createIssue": map[string]any{"issue": map[string]any{"id": issue.Node, "url": issue.URL}}})
}

func graphQLData(data any) format.Answer {
	raw, _ := json.Marshal(map[string]any{"data": data}) // encoding cannot fail, because all values are strings and numbers
	return format.Answer{Status: http.StatusOK, Body: raw}
}

func graphQLError(sort, message string) format.Answer {
	// encoding cannot fail, because all values are strings
	raw, _ := json.Marshal(map[string]any{"data": nil, "errors": []any{map[string]any{"type": sort, "message": message}}})
	return format.Answer{Status: http.StatusOK, Body: raw}
}
