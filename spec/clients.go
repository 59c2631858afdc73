// Clients: sample code that points a client to a drop-in port.

package spec

import (
	"fmt"
	"strings"
)

// maxSnippets is the maximum number of snippets in a spec.
const maxSnippets = 16

// Snippet is a program or a command that reads some records through a drop-in port. Its code contains the
// placeholders of Connection.Fill.
type Snippet struct {
	Title    string `yaml:"title"`    // the name of the client, such as "Python"
	Language string `yaml:"language"` // the language of the code, by its name in Markdown
	Code     string `yaml:"code"`
}

// Connection is what a client needs to know about a drop-in port.
type Connection struct {
	Address string // the scheme, host and port of the drop-in port, such as http://127.0.0.1:4115
	User    string // the user name of the credential
	Secret  string
	Account string // the source's own user name, which may be part of paths
}

// Fill replaces the placeholders of a snippet: {address}, its {scheme} and {host}, {user}, {secret} and {account}.
func (c Connection) Fill(s Snippet) string {
	scheme, host, _ := strings.Cut(c.Address, "://")
	return strings.NewReplacer("{address}", c.Address, "{scheme}", scheme, "{host}", host, "{user}", c.User, "{secret}", c.Secret,
		"{account}", c.Account).Replace(s.Code)
}

// checkSnippets checks that each snippet contains the port's address and a credential.
func checkSnippets(all []Snippet) error {
	if len(all) > maxSnippets {
		return fmt.Errorf("connect has %d entries; write at most %d", len(all), maxSnippets)
	}
	seen := map[string]bool{}
	for i, s := range all {
		leads := strings.Contains(s.Code, "{address}") || strings.Contains(s.Code, "{host}")
		switch {
		case s.Title == "" || s.Language == "" || s.Code == "":
			return fmt.Errorf("connect[%d]: title, language or code is missing", i)
		case seen[s.Title]:
			return fmt.Errorf("connect[%d]: %s appears twice", i, s.Title)
		case !leads || !strings.Contains(s.Code, "{secret}"):
			return fmt.Errorf("connect[%d]: %s: the code needs {address} or {host}, and {secret}", i, s.Title)
		}
		seen[s.Title] = true
	}
	return nil
}
