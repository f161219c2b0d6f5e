package allow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Policy lists what may be opened. A nil Policy allows everything.
type Policy struct {
	// Read and Write list absolute directories and files, and beginnings of addresses such as s3://bucket/in/.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
	// Kept lists absolute directories and files that nothing is written to, but what one of Write that is deeper allows.
	Kept []string `json:"kept,omitempty"`
	// Hosts lists names and addresses of machines, with a port or without, that http, https and sftp may reach. An
	// address of this machine, of its link or of nobody is reached only if it is listed in numbers, or as localhost.
	Hosts       []string `json:"hosts,omitempty"`
	Databases   []string `json:"databases,omitempty"`   // beginnings of addresses, to the end of the database's name
	Environment []string `json:"environment,omitempty"` // names of variables
	Commands    bool     `json:"commands,omitempty"`    // hooks may run commands
}

// refused is the error for something that may not be opened; setting is where it would be allowed.
func refused(setting, format string, args ...any) error {
	f := fault.New(fault.Script, format, args...)
	f.Code = fault.Forbidden
	f.Hint = "who configures the server may add it to places." + setting + " of the workspace"
	return f
}

// ReadFile judges a file of this machine. path is absolute; callers ask again with the path that has no links.
func (p *Policy) ReadFile(path string) error {
	if p == nil || within(p.Read, path) || within(p.Write, path) {
		return nil
	}
	return refused("read", "%s may not be read by this run", path)
}

// WriteFile judges a file of this machine that is written, as ReadFile does.
func (p *Policy) WriteFile(path string) error {
	switch {
	case p == nil:
		return nil
	case longest(p.Kept, path) > 0 && longest(p.Kept, path) >= longest(p.Write, path):
		f := fault.New(fault.Script, "%s may not be written by this run: it belongs to the server", path)
		f.Code, f.Hint = fault.Forbidden, "write to another place"
		return f
	case within(p.Write, path):
		return nil
	}
	return refused("write", "%s may not be written by this run", path)
}

// within reports whether a path is one of some, or below one. A path with steps up is below none.
func within(all []string, file string) bool { return longest(all, file) > 0 }

// longest returns the length of the deepest of some that a path is, or is below; 0: of none.
func longest(all []string, file string) int {
	deepest := 0
	if !filepath.IsAbs(file) || filepath.Clean(file) != file {
		return 0
	}
	for _, one := range all {
		if filepath.IsAbs(one) && (one == file || strings.HasPrefix(file, strings.TrimSuffix(one, "/")+"/")) {
			deepest = max(deepest, len(one))
		}
	}
	return deepest
}

// ReadAddress judges the address of a remote file or of a database, or a pattern of some.
func (p *Policy) ReadAddress(loc address.Location) error {
	if p == nil || p.known(loc, p.Read) || p.known(loc, p.Write) || p.listedHost(loc) {
		return nil
	}
	return refused(settingOf(loc, "read"), "%s may not be read by this run", loc)
}

// WriteAddress judges the address of a remote file or of a database that is written.
func (p *Policy) WriteAddress(loc address.Location) error {
	if p == nil || p.known(loc, p.Write) {
		return nil
	}
	return refused(settingOf(loc, "write"), "%s may not be written by this run", loc)
}

func settingOf(loc address.Location, files string) string {
	if address.Database(loc.URL) {
		return "databases"
	}
	return files
}

// listedHost reports whether an address is of a host of Hosts: all of its files may be read.
func (p *Policy) listedHost(loc address.Location) bool {
	at, ok := canonical(loc.URL)
	u, err := url.Parse(at)
	return ok && err == nil && slices.Contains([]string{"http", "https", "sftp"}, u.Scheme) && p.inHosts(u.Host)
}

// known reports whether an address begins as one of some does.
func (p *Policy) known(loc address.Location, all []string) bool {
	if address.Database(loc.URL) {
		all = p.Databases
	}
	at, ok := canonical(loc.URL)
	return ok && slices.ContainsFunc(all, func(one string) bool {
		begins, ok := canonical(one)
		return ok && (at == begins || strings.HasPrefix(at, strings.TrimSuffix(begins, "/")+"/"))
	})
}

// canonical is an address without user, query and fragment, in a form in which two spellings of one are equal; not ok:
// it has none, or steps up.
func canonical(name string) (string, bool) {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return "", false
	}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "s3": // keys are taken literally
		rest, _, _ = strings.Cut(rest, "*")
		rest, _, _ = strings.Cut(rest, "?")
		return scheme + "://" + rest, !slices.Contains(strings.Split(rest, "/"), "..")
	case "sqlite":
		rest, _, _ = strings.Cut(rest, "#")
		rest, _, _ = strings.Cut(rest, "?")
		file, err := url.PathUnescape(rest)
		return scheme + "://" + path.Clean(file), err == nil && path.IsAbs(file)
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Host == "" {
		return "", false
	}
	if slices.Contains(strings.Split(u.Path, "/"), "..") || strings.Contains(u.Path, `\`) {
		return "", false
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = ports[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.TrimSuffix(host, "."), port) + path.Clean("/"+u.Path), true
}

// Begins reports whether addresses can begin with a text.
func Begins(name string) bool {
	_, ok := canonical(name)
	return ok && !strings.ContainsAny(name, "*?@")
}

// ports are those of addresses that name none.
var ports = map[string]string{"http": "80", "https": "443", "sftp": "22", "postgres": "5432", "postgresql": "5432",
	"mysql": "3306", "mariadb": "3306", "redis": "6379", "rediss": "6379"}

// listed reports whether a host is listed, or is that of an address that is.
func (p *Policy) listed(hostPort string) bool {
	if p.inHosts(hostPort) {
		return true
	}
	host, port := split(hostPort)
	for _, one := range slices.Concat(p.Read, p.Write, p.Databases) {
		if at, ok := canonical(one); ok {
			if u, err := url.Parse(at); err == nil && u.Scheme != "s3" && u.Hostname() == host &&
				(port == "" || u.Port() == port) {
				return true
			}
		}
	}
	return false
}

func (p *Policy) inHosts(hostPort string) bool {
	host, port := split(hostPort)
	return slices.ContainsFunc(p.Hosts, func(one string) bool {
		listed, at := split(one)
		return listed == host && (at == "" || port == "" || at == port)
	})
}

func split(hostPort string) (host, port string) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = strings.Trim(hostPort, "[]"), ""
	}
	return strings.TrimSuffix(strings.ToLower(host), "."), port
}

// Reach judges the connection that is made to a host, once its name stands for an address: what leads to this machine,
// to its link, where clouds tell secrets, or to nobody is refused, unless the host was listed in numbers.
func (p *Policy) Reach(hostPort, resolved string) error {
	if p == nil {
		return nil
	}
	host, _ := split(hostPort)
	if _, err := netip.ParseAddr(host); err == nil && p.listed(hostPort) || host == "localhost" && p.listed(hostPort) {
		return nil
	}
	text, _ := split(resolved)
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return refused("hosts", "%s may not be reached by this run", hostPort)
	}
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || special(ip) {
		return refused("hosts", "%s may not be reached by this run: its name stands for an address of this machine or "+
			"of its link", hostPort)
	}
	return nil
}

// notPublic are further addresses that lead inside: of clouds' own services, and those that hold IPv4 addresses.
var notPublic = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("::/96")}

func special(ip netip.Addr) bool {
	return slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Environ returns a lookup of variables that finds only those that are listed.
func (p *Policy) Environ(lookup func(name string) (string, bool)) func(name string) (string, bool) {
	if p == nil || lookup == nil {
		return lookup
	}
	return func(name string) (string, bool) {
		if !slices.Contains(p.Environment, name) {
			return "", false
		}
		return lookup(name)
	}
}

// Command judges a hook that runs a command.
func (p *Policy) Command() error {
	if p == nil || p.Commands {
		return nil
	}
	return refused("commands", "hooks of this run may not run commands")
}

// Files lists the absolute paths among what may be read and written.
func (p *Policy) Files() (out []string) {
	for _, one := range slices.Concat(p.Read, p.Write) {
		if filepath.IsAbs(one) {
			out = append(out, one)
		}
	}
	return out
}

// MayRead judges a file of this machine as it is named and, if it is there, as its links lead.
func (p *Policy) MayRead(path string) error { return p.both(path, p.ReadFile) }

// MayWrite judges a file of this machine that is written, and the directories that are there of its path.
func (p *Policy) MayWrite(path string) error { return p.both(path, p.WriteFile) }

func (p *Policy) both(path string, judge func(string) error) error {
	if p == nil {
		return nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	if err := judge(abs); err != nil {
		return err
	}
	return judge(address.Resolve(path))
}

// Open opens a file of this machine to read it, and judges what was opened: a link that is swapped between a look and
// the opening leads nowhere. Only regular files are opened; a pipe would be waited for.
func (p *Policy) Open(path string) (_ *os.File, err error) {
	if err := p.MayRead(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, &NotRegularError{Mode: st.Mode()}
	case p == nil:
		return f, nil
	}
	// The kernel knows which file is open, whatever links have become since.
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("see where %s leads: %w", path, err)
	}
	if err := p.ReadFile(real); err != nil {
		return nil, err
	}
	if now, err := os.Lstat(real); err != nil || !os.SameFile(st, now) {
		return nil, refused("read", "%s may not be read by this run: it leads to another file by now", path)
	}
	return f, nil
}

// NotRegularError says that what is at a path is no file to read, such as a pipe.
type NotRegularError struct{ Mode fs.FileMode }

// Error implements error.
func (e *NotRegularError) Error() string { return "it is not a regular file" }

// Glob lists what matches a pattern, as address.Glob does, of what may be read: nothing is told of what is elsewhere.
func (p *Policy) Glob(dir, pattern string) ([]string, error) {
	if p != nil {
		above := pattern
		if at := strings.IndexAny(pattern, `*?[\`); at >= 0 {
			above = pattern[:at] + "-"
			above = above[:strings.LastIndexByte("/"+above, '/')]
		}
		if err := p.MayRead(address.Seen(dir, cmp.Or(above, "."))); err != nil {
			return nil, err
		}
	}
	found, err := address.Glob(dir, pattern)
	return slices.DeleteFunc(found, func(name string) bool { return p.MayRead(address.Seen(dir, name)) != nil }), err
}

// Dialer returns what connects to a host: HOST or HOST:PORT, whatever address its name stands for by then. A host that
// is not listed has been named by whoever runs the process, such as a proxy: addresses were judged before.
func (p *Policy) Dialer(timeout time.Duration, hostPort string) *net.Dialer {
	d := &net.Dialer{Timeout: timeout}
	if p != nil && p.listed(hostPort) {
		d.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return p.Reach(hostPort, resolved)
		}
	}
	return d
}

// Digest tells policies apart.
func (p *Policy) Digest() string {
	text, err := json.Marshal(p)
	if err != nil { // of lists of texts: cannot be
		return ""
	}
	return string(text)
}
