// The Monitor API: its paths, beside those of the 2010 API on one port.
package slowapi

// monitorVersion begins its paths.
const monitorVersion = "/v1"

// monitorRoutes are the paths below it. They show the main account.
var monitorRoutes = []route{}
