/* Reads lines of code points in hexadecimal, parted by spaces; writes for each
 * the NFC, the NFKC and the UTS #39 skeleton of the string, in the same spelling,
 * parted by semicolons. The first line of the output is the Unicode version. */
#include <stdio.h>
#include <stdlib.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uspoof.h>
#include <unicode/ustring.h>

enum { SIZE = 1 << 16 };

static void die(const char *what, UErrorCode e) {
	fprintf(stderr, "%s: %s\n", what, u_errorName(e));
	exit(1);
}

static void put(const UChar *s, int32_t n, char end) {
	for (int32_t i = 0; i < n;) {
		UChar32 c;
		const char *sep = i ? " " : "";
		U16_NEXT(s, i, n, c);
		printf("%s%X", sep, (unsigned)c);
	}
	putchar(end);
}

int main(void) {
	static char line[SIZE * 8];
	static UChar in[SIZE], out[SIZE];
	UErrorCode e = U_ZERO_ERROR;
	UVersionInfo v;
	char version[U_MAX_VERSION_STRING_LENGTH];
	const UNormalizer2 *nfc = unorm2_getNFCInstance(&e);
	const UNormalizer2 *nfkc = unorm2_getNFKCInstance(&e);
	USpoofChecker *spoof = uspoof_open(&e);
	if (U_FAILURE(e))
		die("open", e);
	u_getUnicodeVersion(v);
	u_versionToString(v, version);
	puts(version);
	while (fgets(line, sizeof line, stdin)) {
		int32_t n = 0, m;
		char *p = line, *q;
		for (;; p = q) {
			unsigned long c = strtoul(p, &q, 16);
			if (p == q || n + 2 > SIZE)
				break;
			U16_APPEND_UNSAFE(in, n, c);
		}
		m = unorm2_normalize(nfc, in, n, out, SIZE, &e);
		put(out, m, ';');
		m = unorm2_normalize(nfkc, in, n, out, SIZE, &e);
		put(out, m, ';');
		m = uspoof_getSkeleton(spoof, 0, in, n, out, SIZE, &e);
		put(out, m, '\n');
		if (U_FAILURE(e))
			die("line", e);
	}
	return 0;
}
