package simulate

import "time"

// Limits are what a machine can do; 0 is unknown and bounds nothing.
type Limits struct {
	Disk   float64       `json:"disk_bytes_per_second"`   // of expert records
	Upload float64       `json:"upload_bytes_per_second"` // from memory to the GPU
	Token  time.Duration `json:"token_nanoseconds"`       // of everything else, with all experts resident
}

// Known says whether any limit is.
func (l Limits) Known() bool { return l.Disk > 0 || l.Upload > 0 || l.Token > 0 }

// Speed is tokens per second where each token needs so many bytes of records: bound, if reading,
// uploading and computing overlap completely, so that the slowest decides; and serial, if nothing
// overlaps. Both are 0 where nothing bounds them.
func (l Limits) Speed(bytesPerToken float64) (bound, serial float64) {
	var longest, sum float64
	take := func(seconds float64) { longest, sum = max(longest, seconds), sum+seconds }
	if l.Disk > 0 {
		take(bytesPerToken / l.Disk)
	}
	if l.Upload > 0 {
		take(bytesPerToken / l.Upload)
	}
	take(l.Token.Seconds())
	if sum == 0 {
		return 0, 0
	}
	return 1 / longest, 1 / sum
}

// By names the limit that decides at so many bytes per token; empty where nothing does.
func (l Limits) By(bytesPerToken float64) string {
	var longest float64
	var by string
	for _, x := range []struct {
		name    string
		seconds float64
	}{{"gpu", l.Token.Seconds()}, {"disk", over(bytesPerToken, l.Disk)}, {"upload", over(bytesPerToken, l.Upload)}} {
		if x.seconds > longest {
			longest, by = x.seconds, x.name
		}
	}
	return by
}

func over(bytes, rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	return bytes / rate
}
