// Agent: browsers in words.

package people

import "testing"

func TestBrowserIsNamedByItsOwnName(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0": "Edge on Windows",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36":                     "Chrome on Linux",
		"Mozilla/5.0 (X11; CrOS x86_64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 OPR/112.0":            "Opera on ChromeOS",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1 Version/17.5 Safari/605.1":          "Safari on macOS",
		"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/126.0 Mobile Safari/537.36":     "Chrome on Android",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) CriOS/126.0 Mobile Safari/604.1":            "Chrome on iPhone",
		"Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) FxiOS/127.0 Mobile Safari/605.1":                     "Firefox on iPad",
		"curl/8.8.0": "curl", "": "A browser", "<script>": "A browser",
	} {
		if got := browserOf(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}
