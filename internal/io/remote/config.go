package remote

import (
	"log/slog"
	"time"
)

// Limits and defaults.
const (
	transfersMax     = 8   // at once, of one Client
	triesMax         = 6   // of one transfer without a byte of progress
	triesTotalMax    = 100 // of one transfer
	pauseMin         = 200 * time.Millisecond
	pauseMax         = 10 * time.Second
	connectTimeout   = 15 * time.Second // for TCP, and again for TLS or the SSH handshake
	idleTimeout      = 60 * time.Second // without a byte, or for the beginning of an answer
	redirectsMax     = 10
	caBytesMax       = 16 << 20
	keyBytesMax      = 1 << 20
	freeDiskBytesMin = 64 << 20 // left free by copies
	// SpoolBytesDefault bounds the copies of one run's inputs.
	SpoolBytesDefault = 1 << 40
)

// Config of a Client. The zero value reads public https files.
type Config struct {
	CAPath      string // PEM file, or directory of such, trusted beside the system's
	S3Endpoint  string // URL of an S3-compatible service; "": what the AWS environment says
	S3PathStyle *bool  // bucket in the path, not in the host name; nil: if there is an endpoint of one's own
	S3Region    string // "": what the AWS environment says
	// S3Observe is told of each request to the service; nil: nobody is. It is called
	// from several goroutines.
	S3Observe func(request string, took time.Duration, err error) `json:"-"`
	// "": credentials are where the AWS tools look for them
	S3AccessKey string
	S3SecretKey string // of the access key
	// of the AWS tools' shared files; "": what the AWS environment says
	S3Profile string
	// private key file of each user; others have those in HomeDir/.ssh
	SFTPKeys   map[string]string
	KnownHosts string // "": HomeDir/.ssh/known_hosts
	HomeDir    string // the user's
	SpoolBytes int64  // limit of one run's copies; 0: SpoolBytesDefault
	Logger     *slog.Logger

	// For tests; 0 is the default.
	Pause, PauseMax, IdleTimeout, ConnectTimeout time.Duration
}

func (c Config) withDefaults() Config {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&c.Pause, pauseMin)
	or(&c.PauseMax, pauseMax)
	or(&c.IdleTimeout, idleTimeout)
	or(&c.ConnectTimeout, connectTimeout)
	if c.SpoolBytes == 0 {
		c.SpoolBytes = SpoolBytesDefault
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
