// A length that is believed, in the shape of OpenSSL's CVE-2014-0160 (Heartbleed): a message says
// how long its payload is, nobody compares that with how much has arrived, and the answer has what
// lay behind the message.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { REQUEST = 1, RESPONSE = 2, PADDING = 16 };

struct message {
	unsigned char type;
	unsigned short length; // of the payload; padding follows that
	unsigned char payload[];
} __attribute__((packed));

struct record {
	size_t length; // bytes of data that have arrived
	unsigned char data[32];
};

struct connection {
	struct record in;
	char key[64]; // nobody else's business
	size_t sent;
};

static void receive(struct record *r, const unsigned char *bytes, size_t n) {
	for (r->length = 0; r->length < n && r->length < sizeof r->data; r->length++)
		r->data[r->length] = bytes[r->length];
}

static size_t respond(unsigned char *out, const unsigned char *payload, unsigned length) {
	out[0] = RESPONSE;
	out[1] = length >> 8;
	out[2] = length;
	memcpy(out + 3, payload, length);
	memset(out + 3 + length, 0, PADDING);
	return 3 + length + PADDING;
}

static void heartbeat(struct connection *c, unsigned char *out) {
	const struct message *m = (const void *)c->in.data;
	unsigned length = ntohs(m->length); // cause: it may be more than c->in.length
	if (m->type == REQUEST)
		c->sent += respond(out, m->payload, length);
}

int main(void) {
	static const unsigned char good[] = { REQUEST, 0, 4, 'b', 'i', 'r', 'd' };
	static const unsigned char evil[] = { REQUEST, 0, 80, 'h', 'a', 't' };
	static struct connection c = { .key = "-----BEGIN RSA PRIVATE KEY-----" };
	static unsigned char out[256];
	receive(&c.in, good, sizeof good);
	heartbeat(&c, out);
	receive(&c.in, evil, sizeof evil);
	heartbeat(&c, out);
	printf("%zu bytes have been sent\n", c.sent); // symptom: 13 have arrived
	return 0;
}
