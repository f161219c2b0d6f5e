package benches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
)

// Limits of what an exporter says.
const (
	exporterPatience = 5 * time.Second
	exporterBytesMax = 16 << 20
	linesMax         = 200_000
	familiesMax      = 2000 // that are kept of one exporter
	whyMax           = 256  // bytes of what cannot be read
)

// exporter is an address that says in Prometheus' text what a server does.
type exporter struct {
	address string // without the user and the password
	node    string
	request *http.Request
	client  *http.Client
}

// openExporters checks addresses of exporters.
func openExporters(addresses []string) ([]*exporter, error) {
	var out []*exporter
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, &fault.Error{Kind: fault.Script, Message: "cannot read the exporter " + shown(address),
				Hint: "name it as http://HOST:PORT/metrics"}
		}
		if u.Path == "" {
			u.Path = "/metrics"
		}
		user := u.User
		u.User = nil
		request := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{
			"Accept": {"text/plain;version=0.0.4"}}}
		if user != nil {
			password, _ := user.Password()
			request.SetBasicAuth(user.Username(), password)
		}
		out = append(out, &exporter{u.String(), u.Host, request, &http.Client{Timeout: exporterPatience}})
	}
	return out, nil
}

// readExporters asks all exporters at once.
func readExporters(ctx context.Context, from []*exporter) ([]load.Reading, error) {
	out, errs := make([]load.Reading, len(from)), make([]error, len(from))
	var all sync.WaitGroup
	for i, e := range from {
		all.Go(func() { out[i], errs[i] = e.read(ctx) })
	}
	all.Wait()
	var there []load.Reading
	for _, r := range out {
		if r.Node != "" {
			there = append(there, r)
		}
	}
	return there, errors.Join(errs...)
}

// read asks an exporter.
func (e *exporter) read(ctx context.Context) (_ load.Reading, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the exporter %s: %w", e.address, err)
		}
	}()
	response, err := e.client.Do(e.request.WithContext(ctx))
	if err != nil {
		return load.Reading{}, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return load.Reading{}, fmt.Errorf("it answers %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, exporterBytesMax+1))
	switch {
	case err != nil:
		return load.Reading{}, err
	case len(text) > exporterBytesMax, bytes.Count(text, []byte("\n")) > linesMax: // a short line is large as a metric
		return load.Reading{}, fmt.Errorf("it says more than %d MiB or %d lines", exporterBytesMax>>20, linesMax)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	switch {
	case err != nil:
		return load.Reading{}, errors.New(strings.ToValidUTF8(err.Error()[:min(len(err.Error()), whyMax)], "?"))
	case len(families) > familiesMax:
		return load.Reading{}, fmt.Errorf("it has %d metrics, and %d are the most", len(families), familiesMax)
	}
	r := load.Reading{Node: e.node, Counters: map[string]float64{}, Gauges: map[string]float64{}}
	for name, family := range families {
		note(r, name, family)
	}
	known(r, families)
	return r, nil
}

// note keeps the sum of a metric over its labels.
func note(r load.Reading, name string, family *dto.MetricFamily) {
	for _, m := range family.GetMetric() {
		switch family.GetType() {
		case dto.MetricType_COUNTER:
			add(r.Counters, name, m.GetCounter().GetValue())
		case dto.MetricType_GAUGE:
			add(r.Gauges, name, m.GetGauge().GetValue())
		case dto.MetricType_UNTYPED:
			add(r.Gauges, name, m.GetUntyped().GetValue())
		case dto.MetricType_SUMMARY:
			add(r.Counters, name+"_sum", m.GetSummary().GetSampleSum())
			add(r.Counters, name+"_count", float64(m.GetSummary().GetSampleCount()))
		case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
			add(r.Counters, name+"_sum", m.GetHistogram().GetSampleSum())
			add(r.Counters, name+"_count", float64(m.GetHistogram().GetSampleCount()))
		}
	}
}

// add adds what JSON can say.
func add(to map[string]float64, name string, v float64) {
	if sum := to[name] + v; !math.IsNaN(sum) && !math.IsInf(sum, 0) {
		to[name] = sum
	}
}

// meanings are what metrics of exporters that many have are in our names. A metric with labels counts where one of
// them has not the value that is given behind "!".
var meanings = []struct{ metric, label, not, is string }{
	{"node_cpu_seconds_total", "mode", "idle", load.CPUSeconds}, // node_exporter
	{"node_network_receive_bytes_total", "device", "lo", load.NetworkIn},
	{"node_network_transmit_bytes_total", "device", "lo", load.NetworkOut},
	{"node_disk_read_bytes_total", "", "", load.DiskRead},
	{"node_disk_written_bytes_total", "", "", load.DiskWritten},
	{"jvm_gc_collection_seconds", "", "", load.PauseSecs}, // Prometheus' client of Java
	{"jvm_gc_collection_seconds_sum", "", "", load.PauseSecs},
}

// known gives metrics our names. The processor time of a process is the server's only where the exporter is in the
// server's own process, as an agent in a Java machine is: others tell of themselves.
func known(r load.Reading, families map[string]*dto.MetricFamily) {
	for _, m := range meanings {
		for _, metric := range families[m.metric].GetMetric() {
			if skip(metric, m.label, m.not) {
				continue
			}
			v := metric.GetCounter().GetValue() + metric.GetUntyped().GetValue() + metric.GetGauge().GetValue() +
				metric.GetSummary().GetSampleSum()
			add(r.Counters, m.is, v)
		}
	}
	if v, ok := r.Counters["process_cpu_seconds_total"]; ok && families["jvm_gc_collection_seconds"] != nil {
		r.Counters[load.CPUSeconds] = v
	}
	cores := map[string]bool{}
	for _, metric := range families["node_cpu_seconds_total"].GetMetric() {
		for _, l := range metric.GetLabel() {
			if l.GetName() == "cpu" {
				cores[l.GetValue()] = true
			}
		}
	}
	if len(cores) > 0 {
		r.Gauges[load.Cores] = float64(len(cores))
	} else if v, ok := r.Gauges["machine_cpu_cores"]; ok { // cAdvisor
		r.Gauges[load.Cores] = v
	}
}

// skip reports whether a metric is of what does not count. Waiting for a disk is not work of a processor either.
func skip(m *dto.Metric, label, not string) bool {
	for _, l := range m.GetLabel() {
		if l.GetName() == label && label != "" && (l.GetValue() == not || label == "mode" && l.GetValue() == "iowait") {
			return true
		}
	}
	return false
}

// join adds readings of exporters to those of the servers on the same hosts.
func join(servers, exporters []load.Reading) []load.Reading {
	for _, e := range exporters {
		joined := false
		for i := range servers {
			if machineOf(servers[i].Node) == machineOf(e.Node) && !joined {
				joined = true
				maps.Copy(servers[i].Counters, e.Counters)
				maps.Copy(servers[i].Gauges, e.Gauges)
			}
		}
		if !joined {
			servers = append(servers, e)
		}
	}
	return servers
}

// localCores adds the cores of this host to readings of servers on it that know of none.
func localCores(readings []load.Reading) {
	for _, r := range readings {
		if _, known := r.Gauges[load.Cores]; !known && onThisHost(r.Node) {
			r.Gauges[load.Cores] = float64(runtime.NumCPU())
		}
	}
}

// onThisHost reports whether an address, or the path of a socket, is of this host.
func onThisHost(node string) bool {
	machine := machineOf(node)
	if strings.HasPrefix(machine, "/") || machine == "localhost" {
		return true
	}
	ip := net.ParseIP(machine)
	own, err := net.InterfaceAddrs()
	return ip.IsLoopback() || err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		of, ok := a.(*net.IPNet)
		return ok && of.IP.Equal(ip)
	})
}

// machineOf is an address without the port.
func machineOf(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return strings.Trim(address, "[]")
}
