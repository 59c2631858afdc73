package follow

// NewHTTPClient makes newHTTPClient known to tests of package follow_test.
var NewHTTPClient = newHTTPClient
