// Agent: which browser it was, in words.

package people

import "strings"

// Browsers call themselves by several names; the first that is found here is the own one.
var (
	browsers = []struct{ token, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"},
		{"Safari/", "Safari"}, {"curl/", "curl"},
	}
	systems = []struct{ token, name string }{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Macintosh", "macOS"}, {"CrOS", "ChromeOS"},
		{"Linux", "Linux"},
	}
)

// browserOf is a browser in words, from what it sends as User-Agent.
func browserOf(agent string) string {
	browser, system := "A browser", ""
	for _, b := range browsers {
		if strings.Contains(agent, b.token) {
			browser = b.name
			break
		}
	}
	for _, s := range systems {
		if strings.Contains(agent, s.token) {
			system = " on " + s.name
			break
		}
	}
	return browser + system
}
