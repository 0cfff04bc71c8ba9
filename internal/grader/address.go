package grader

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// hostOf is the host of an address, as --allow-host takes it; "" for none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// CheckAddress says what is wrong with an address that rows are sent to, "" for nothing.
func CheckAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return "is not an address as https://host/path"
	}
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case u.User != nil:
		return "holds a name or a password; put it into a header, from the environment"
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback):
		return "must be https, or http to a loopback address, got " + u.Scheme
	}
	return ""
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// Check implements Checker.
func (g *HTTP) Check() error {
	if msg := CheckAddress(g.URL); msg != "" {
		return fault("url", "%s", msg)
	}
	for name, value := range g.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fault("headers", "%q is not a header that can be sent", name)
		}
		if strings.Contains(value, "${env:"+ownKey+"}") {
			return fault("headers", "%s pays for GPUs and is for nobody else; leave it out", ownKey)
		}
	}
	return nil
}
