// The name of a browser, from its User-Agent header.

package people

import "strings"

// A User-Agent names several browsers. The first of this list that it contains is its own.
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

// browserOf returns a browser and its system in words.
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
