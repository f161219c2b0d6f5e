package clusterconfig

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/secret"
	"thalweg/internal/base/settings"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/sheet"
)

func (r *reader) root(v *document.Value) {
	c := r.cfg
	there := r.Fields(v, "",
		settings.Key("version", r.version),
		settings.Key("state", r.state),
		settings.Key("parts", r.parts),
		settings.Key("queue", r.queue),
		settings.Key("worker", func(v *document.Value, path string) {
			w := &c.Worker
			r.Fields(v, path, settings.Key("scratch", r.PathTo(&w.Scratch)),
				settings.Key("cache", r.SizeTo(&w.Cache, cacheMinBytes)),
				settings.Key("memory", r.SizeTo(&w.Memory, cacheMinBytes)),
				settings.Key("cores", r.CountTo(&w.Cores, 1, coresMax)),
				settings.Key("drain", r.DurationTo(&w.Drain, drainMax)),
				settings.Key("metrics", r.metrics), settings.Key("python", r.TextTo(&w.Python)),
				settings.Key("machine", r.machine),
				settings.Key("concurrency", r.concurrency))
		}),
		settings.Key("cost", r.cost))
	if there["version"] == nil {
		r.ErrorAt(v, "version", "the version is missing").Hint = "write version: 1"
	}
	if there["state"] == nil {
		r.ErrorAt(v, "state", "where the state is kept is missing").Hint =
			"write state: {cassandra: {hosts: [HOST]}} or state: {directory: PATH}"
		return
	}
	if c.State.Cassandra != nil && c.Parts.S3 == nil && c.Parts.Directory == "" {
		c.Parts.Cassandra = true
	}
	if c.Parts.Cassandra && c.State.Cassandra == nil && !r.HasErrors() {
		r.ErrorAt(there["parts"], "parts", "parts in Cassandra need the state there, too").Hint =
			"name s3 or a directory for the parts"
	}
}

func (r *reader) version(v *document.Value, path string) {
	if text := r.Text(v, path); text != "1" && text != "" {
		r.ErrorAt(v, path, "version %s is not known", document.Quote(text)).Hint = "this program knows version 1"
	}
}

// oneOf refuses none or several of a section's choices.
func (r *reader) oneOf(v *document.Value, path string, there map[string]*document.Value, names ...string) {
	var named []string
	for _, name := range names {
		if there[name] != nil {
			named = append(named, name)
		}
	}
	if v.Present() && v.Kind != document.Map || r.HasErrors() && len(named) == 0 {
		return
	}
	switch len(named) {
	case 0:
		r.ErrorAt(v, path, "%s names none of %s", path, strings.Join(names, ", "))
	case 1:
	default:
		r.ErrorAt(v, path, "%s names %s: it is one of them", path, strings.Join(named, " and "))
	}
}

func (r *reader) state(v *document.Value, path string) {
	there := r.Fields(v, path, settings.Key("cassandra", r.cassandra),
		settings.Key("directory", r.PathTo(&r.cfg.State.Directory)))
	r.oneOf(v, path, there, "cassandra", "directory")
}

func (r *reader) parts(v *document.Value, path string) {
	there := r.Fields(v, path,
		settings.Key("cassandra", func(v *document.Value, path string) {
			r.Fields(v, path)
			r.cfg.Parts.Cassandra = true
		}),
		settings.Key("s3", r.s3), settings.Key("directory", r.PathTo(&r.cfg.Parts.Directory)))
	r.oneOf(v, path, there, "cassandra", "s3", "directory")
}

var (
	keyspaceText   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	datacenterText = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

func (r *reader) cassandra(v *document.Value, path string) {
	c := &Cassandra{Keyspace: KeyspaceDefault}
	r.cfg.State.Cassandra = c
	there := r.Fields(v, path,
		settings.Key("hosts", r.HostsTo(&c.Hosts, cassandraPort)), settings.Key("keyspace", r.TextTo(&c.Keyspace)),
		settings.Key("datacenter", r.TextTo(&c.Datacenter)),
		settings.Key("replication", func(v *document.Value, path string) { c.Replication = r.replication(v, path) }),
		settings.Key("username", r.TextTo(&c.Username)), settings.Key("password", r.PasswordTo(&c.Password)),
		settings.Key("password_file", r.PasswordFileTo(&c.Password)), settings.Key("tls", r.tlsTo(&c.TLS)))
	switch {
	case there["hosts"] == nil:
		r.ErrorAt(v, path, "%s names no hosts", path).Hint = "write hosts: [HOST]"
	case !keyspaceText.MatchString(c.Keyspace) && c.Keyspace != "":
		r.ErrorAt(there["keyspace"], path+".keyspace", "%s cannot be the name of a keyspace",
			document.Quote(c.Keyspace)).Hint = "a small letter, then small letters, digits and _, 48 together at most"
	case c.Datacenter != "" && !datacenterText.MatchString(c.Datacenter):
		r.ErrorAt(there["datacenter"], path+".datacenter", "%s cannot be the name of a datacenter",
			document.Quote(c.Datacenter))
	}
	r.onePassword(v, path, there)
	if c.Replication == nil {
		c.Replication, c.Unsaid = map[string]int{c.Datacenter: CassandraReplicas}, true
	}
}

// onePassword refuses a password that is given in two ways, or to nobody.
func (r *reader) onePassword(v *document.Value, path string, there map[string]*document.Value) {
	given := there["password"] != nil || there["password_file"] != nil
	switch {
	case there["password"] != nil && there["password_file"] != nil:
		r.ErrorAt(v, path, "%s has a password and a password_file: it is one of them", path)
	case given && there["username"] == nil:
		r.ErrorAt(v, path, "%s has a password and no username", path)
	case !given && there["username"] != nil:
		r.ErrorAt(v, path, "%s has a username and no password",
			path).Hint = `write password: "{env.NAME}" or password_file: PATH`
	}
}

// replication is a number, or a number for each datacenter.
func (r *reader) replication(v *document.Value, path string) map[string]int {
	out := map[string]int{}
	if v.Present() && v.Kind != document.Map {
		n := 0
		r.CountTo(&n, 1, replicasMax)(v, path)
		out[r.cfg.State.Cassandra.Datacenter] = n
		return out
	}
	if !v.Present() || len(v.Entries) == 0 {
		r.ErrorAt(v, path, "%s names no datacenter", path).Hint = "write a number, or {DATACENTER: 3}"
		return nil
	}
	for _, e := range v.Entries {
		n := 0
		if !datacenterText.MatchString(e.Name) {
			r.ErrorAt(e.Key, path, "%s cannot be the name of a datacenter", document.Quote(e.Name))
		}
		r.CountTo(&n, 1, replicasMax)(e.Value, settings.Join(path, e.Name))
		r.Note(e.Value, settings.Join(path, e.Name))
		out[e.Name] = n
	}
	return out
}

func (r *reader) s3(v *document.Value, path string) {
	s := &S3{}
	r.cfg.Parts.S3 = s
	there := r.Fields(v, path, settings.Key("url", r.AddressTo(&s.URL)),
		settings.Key("endpoint", r.AddressTo(&s.Endpoint)),
		settings.Key("region", r.TextTo(&s.Region)), settings.Key("ca", r.PathTo(&s.CA)),
		settings.Key("access_key", r.PasswordTo(&s.AccessKey)),
		settings.Key("access_key_file", r.PasswordFileTo(&s.AccessKey)),
		settings.Key("secret_key", r.PasswordTo(&s.SecretKey)),
		settings.Key("secret_key_file", r.PasswordFileTo(&s.SecretKey)))
	r.onePair(v, path, there)
	if there["url"] == nil {
		r.ErrorAt(v, path, "%s names no url", path).Hint = "write url: s3://BUCKET/PREFIX"
		return
	}
	u, err := url.Parse(s.URL)
	if s.URL != "" && (err != nil || u.Scheme != "s3" || u.Host == "" || strings.Trim(u.Path, "/") == "" ||
		u.User != nil || u.RawQuery != "") {
		r.ErrorAt(there["url"], path+".url", "%s is not the address of a bucket",
			document.Quote(r.Known().Text(s.URL))).Hint =
			"write s3://BUCKET/PREFIX; keys come from the environment, as for scripts"
	}
	if e, err := url.Parse(s.Endpoint); s.Endpoint != "" && (err != nil || e.Host == "" || e.Scheme != "http" &&
		e.Scheme != "https") {
		r.ErrorAt(there["endpoint"], path+".endpoint", "%s is not an address",
			document.Quote(r.Known().Text(s.Endpoint))).Hint = "write https://HOST:PORT"
	}
}

// onePair refuses half of a pair of keys, and a key that is given in two ways.
func (r *reader) onePair(v *document.Value, path string, there map[string]*document.Value) {
	given := map[string]bool{}
	for _, name := range []string{"access_key", "secret_key"} {
		if there[name] != nil && there[name+"_file"] != nil {
			r.ErrorAt(there[name+"_file"], path, "%s has %s and %s_file: it is one of them", path, name, name)
		}
		given[name] = there[name] != nil || there[name+"_file"] != nil
	}
	if given["access_key"] != given["secret_key"] {
		r.ErrorAt(v, path, "%s has one of access_key and secret_key: it needs both or none",
			path).Hint = "without them, keys come from the environment, as for scripts"
	}
}

func (r *reader) queue(v *document.Value, path string) {
	there := r.Fields(v, path, settings.Key("rabbitmq", r.rabbitmq))
	r.oneOf(v, path, there, "rabbitmq")
}

func (r *reader) rabbitmq(v *document.Value, path string) {
	q := &RabbitMQ{VHost: VHostDefault}
	r.cfg.Queue = q
	var address string
	var hosts []string
	there := r.Fields(v, path,
		settings.Key("url", r.AddressTo(&address)),
		settings.Key("hosts", func(v *document.Value, path string) { r.HostsTo(&hosts, rabbitPort)(v, path) }),
		settings.Key("username", r.TextTo(&q.Username)), settings.Key("password", r.PasswordTo(&q.Password)),
		settings.Key("password_file", r.PasswordFileTo(&q.Password)),
		settings.Key("vhost", r.TextTo(&q.VHost)), settings.Key("tls", r.tlsTo(&q.TLS)))
	q.Hosts = hosts
	switch {
	case there["url"] != nil && there["hosts"] != nil:
		r.ErrorAt(v, path, "%s has a url and hosts: it is one of them", path)
	case there["url"] != nil:
		r.brokerAt(there["url"], path+".url", address, q, there["vhost"] != nil)
		if q.Username != "" {
			return
		}
	case there["hosts"] == nil:
		r.ErrorAt(v, path, "%s names no url and no hosts", path).Hint = "write url: amqp://HOST/ or hosts: [HOST]"
	}
	r.onePassword(v, path, there)
}

// brokerAt takes an address apart: amqp://user:password@host:port/vhost.
func (r *reader) brokerAt(v *document.Value, path, address string, q *RabbitMQ, vhost bool) {
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "amqp" && u.Scheme != "amqps" {
		r.ErrorAt(v, path, "%s is not the address of a broker", path).Hint = "write amqp://HOST:5672/ or " +
			"amqps://HOST:5671/"
		return
	}
	port := rabbitPort
	if u.Scheme == "amqps" {
		if port = rabbitSecurePort; q.TLS == nil {
			q.TLS = &TLS{}
		}
	}
	r.Host(v, path, u.Host, port, &q.Hosts)
	if u.User != nil {
		q.Username = u.User.Username()
		if q.Password, _ = u.User.Password(); q.Password != "" {
			r.Known().Add(q.Password, secret.Mask)
		}
	}
	if name := strings.TrimPrefix(u.Path, "/"); name != "" && !vhost {
		q.VHost = name
	}
}

func (r *reader) tlsTo(to **TLS) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if v.Present() && v.Kind == document.Bool {
			if v.Text == "true" {
				*to = &TLS{}
			}
			return
		}
		t := &TLS{}
		*to = t
		there := r.Fields(v, path, settings.Key("ca", r.PathTo(&t.CA)), settings.Key("cert", r.PathTo(&t.Cert)),
			settings.Key("key", r.PathTo(&t.Key)), settings.Key("server_name", r.TextTo(&t.ServerName)))
		if (there["cert"] == nil) != (there["key"] == nil) {
			r.ErrorAt(v, path, "%s has one of cert and key: it needs both or none", path)
		}
	}
}

func (r *reader) metrics(v *document.Value, path string) {
	to := &r.cfg.Worker.Metrics
	if r.TextTo(to)(v, path); *to == "" {
		return
	}
	i := strings.LastIndexByte(*to, ':')
	port, err := strconv.Atoi((*to)[i+1:])
	if i < 0 || err != nil || port < 0 || port > 65535 || slices.Contains([]string{"http", "https"}, (*to)[:i]) {
		r.ErrorAt(v, path, "%s is not HOST:PORT",
			document.Quote(*to)).Hint = "write :9464 for this machine alone, or HOST:9464"
	}
}

func (r *reader) machine(v *document.Value, path string) {
	to := &r.cfg.Worker.Machine
	if r.TextTo(to)(v, path); *to != "" && !sheet.IsMachine(*to) {
		r.ErrorAt(v, path, "%s does not name a type of machine", document.Quote(*to)).Hint =
			"use up to 64 letters, digits, dots, _ and -: c7g.large"
	}
}

// concurrency is a number of batches, or for each class of work a number of batches or
// several knobs.
func (r *reader) concurrency(v *document.Value, path string) {
	fixed := concurrency.Fixed{}
	r.cfg.Worker.Concurrency = fixed
	count := func(v *document.Value, path string, of ...concurrency.Of) {
		n := 0
		if r.CountTo(&n, 1, concurrency.FixedMost)(v, path); n > 0 {
			for _, each := range of {
				fixed[each] = n
			}
		}
	}
	if v.Present() && v.Kind != document.Map {
		var all []concurrency.Of
		for _, class := range concurrency.Classes() {
			all = append(all, concurrency.Of{Class: class, Knob: concurrency.Batches})
		}
		count(v, path, all...)
		return
	}
	var classes []settings.Field
	for _, class := range concurrency.Classes() {
		classes = append(classes, settings.Key(class, func(v *document.Value, path string) {
			if v.Present() && v.Kind != document.Map {
				count(v, path, concurrency.Of{Class: class, Knob: concurrency.Batches})
				return
			}
			var knobs []settings.Field
			for _, knob := range concurrency.KnobsOf(class) {
				knobs = append(knobs, settings.Key(knob,
					func(v *document.Value, path string) { count(v, path, concurrency.Of{Class: class, Knob: knob}) }))
			}
			r.Fields(v, path, knobs...)
		}))
	}
	r.Fields(v, path, classes...)
}
