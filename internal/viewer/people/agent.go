// The name of a browser, from its User-Agent header.

package people

import "strings"

// The names of browsers and systems that may be in a User-Agent header, which contains several. The first of this
// list that it contains is the right one.
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

// browserOf returns the name of a browser and of its operating system, in words.
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
