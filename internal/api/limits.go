package api

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

// limitedMost limits the users, or addresses, whose requests are counted apart. Those beyond share a count.
const limitedMost = 10_000

// retryDefault is when a client may try again if nothing says when there is room.
const retryDefault = 5 * time.Second

// limiter limits requests by who sends them.
type limiter struct {
	perSecond, burst int

	mu     sync.Mutex
	of     map[string]*rate.Limiter
	others *rate.Limiter
}

func newLimiter(perSecond, burst int) *limiter {
	return &limiter{perSecond: perSecond, burst: burst, of: map[string]*rate.Limiter{},
		others: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// take counts a request; one that is too many is an error that says when there is room for it.
func (l *limiter) take(who string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.limiterOf(who, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return &fault.Error{Kind: fault.Script, Code: fault.TooMany, Message: "there are too many requests",
		Hint: fmt.Sprintf("wait, and send %d a second at most", l.perSecond), Err: &access.WaitError{Wait: wait}}
}

// limiterOf finds the count of somebody. Those who have sent nothing for long are forgotten.
func (l *limiter) limiterOf(who string, now time.Time) *rate.Limiter {
	if one, is := l.of[who]; is {
		return one
	}
	if len(l.of) >= limitedMost {
		for key, one := range l.of {
			if one.TokensAt(now) >= float64(l.burst) {
				delete(l.of, key)
			}
		}
	}
	if len(l.of) >= limitedMost {
		return l.others
	}
	one := rate.NewLimiter(rate.Limit(l.perSecond), l.burst)
	l.of[who] = one
	return one
}

// prefixBitsV6 is the prefix of the addresses that one client may have all of.
const prefixBitsV6 = 64

// networkOf is what an address is counted as: of IPv6, the network that one client has.
func networkOf(address string) string {
	ip := net.ParseIP(strings.Trim(address, "[]"))
	if ip == nil || ip.To4() != nil {
		return address
	}
	return ip.Mask(net.CIDRMask(prefixBitsV6, 8*net.IPv6len)).String()
}

// GetHeaders returns the headers of the answer.
func (p *Problem) GetHeaders() http.Header {
	switch p.Status {
	case http.StatusTooManyRequests:
	case http.StatusUnauthorized:
		return http.Header{"Www-Authenticate": {"Bearer"}}
	default:
		return nil
	}
	wait := p.wait
	if wait == 0 {
		wait = retryDefault
	}
	return http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(wait.Seconds())))}}
}
