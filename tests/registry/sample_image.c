/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/sample_image.h"

#include "layers/blob.h"
#include "registry/layout.h"
#include "tests/check.h"
#include "tests/layers/tarball.h"
#include "tests/registry/stock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Layer 2 is big and does not compress; the others hold a file each. */
static void sample_add_files(struct tarball *tar, int number)
{
	auto_free char *big = malloc(SAMPLE_BIG);
	uint32_t seed = 1;
	char text[32];

	assert_non_null(big);
	(void)snprintf(text, sizeof(text), "layer %d\n", number);
	tarball_entry(tar, .name = "etc", .type = '5');
	tarball_entry(tar, .name = "etc/layer", .data = str_of(text));
	if (number != 2)
		return;
	for (size_t i = 0; i < SAMPLE_BIG; i++) {
		seed = seed * 1664525 + 1013904223;
		big[i] = (char)(seed >> 24);
	}
	tarball_entry(tar, .name = "big", .data = (struct str){big, SAMPLE_BIG});
}

/* Bytes as a blob that this image names by one algorithm; *out_id is their sha256. */
static void sample_put(struct store *scratch, struct str bytes, enum sample_fault fault,
		       struct descriptor *out, struct digest *out_id)
{
	struct err err = {0};

	*out = (struct descriptor){.size = bytes.len};
	out->digest = stock_digest(bytes, fault >= SAMPLE_SHA512 ? DIGEST_SHA512 : DIGEST_SHA256);
	check_ok(blob_put_as(scratch, bytes, &out->digest, out_id, &err), &err);
}

static void sample_layer(struct store *scratch, int number, enum sample_fault fault,
			 struct descriptor *out, struct digest *out_diff_id)
{
	struct tarball tar;

	tarball_init(&tar);
	sample_add_files(&tar, number);
	tarball_end(&tar);
	sample_put(scratch, buf_str(&tar.bytes), fault, out, out_diff_id);
	tarball_done(&tar);
}

static void sample_config(struct store *scratch, const struct sample_image *image,
			  enum sample_fault fault, struct descriptor *out)
{
	auto_buf struct buf text = BUF_INIT(10000);
	size_t count = fault == SAMPLE_FEW_IDS ? SAMPLE_LAYERS - 1 : SAMPLE_LAYERS;
	char name[DIGEST_TEXT_MAX];
	struct digest id;
	struct err err = {0};

	check_ok(
		buf_addf(&text, &err,
			 "{\"os\":\"linux\",\"architecture\":\"%s\",\"config\":{\"Env\":[\"ODD\"]},"
			 "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[",
			 fault == SAMPLE_FOR_ANOTHER ? "s390x" : "amd64"),
		&err);
	for (size_t i = 0; i < count; i++) {
		/* layers are plain tars */
		struct digest diff_id =
			fault > SAMPLE_SHA512 ? image->layers[i] : image->diff_ids[i];

		if (fault == SAMPLE_SHA512_ID && i == count - 1)
			diff_id.bytes[0] ^= 1;
		check_ok(buf_addf(&text, &err, "%s\"%s\"", i ? "," : "",
				  digest_format(&diff_id, name)),
			 &err);
	}
	check_ok(buf_add(&text, STR("]}}"), &err), &err);
	sample_put(scratch, buf_str(&text), fault, out, &id);
}

static void sample_manifest(struct store *scratch, const struct descriptor *config,
			    const struct descriptor *layers, struct digest *out)
{
	auto_buf struct buf text = BUF_INIT(10000);
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"config\":{\"mediaType\":\"" MEDIA_OCI_CONFIG
			  "\",\"digest\":\"%s\",\"size\":%zu},\"layers\":[",
			  digest_format(&config->digest, name), (size_t)config->size),
		 &err);
	for (size_t i = 0; i < SAMPLE_LAYERS; i++)
		check_ok(buf_addf(&text, &err,
				  "%s{\"mediaType\":\"" MEDIA_OCI_LAYER_TAR
				  "\",\"digest\":\"%s\",\"size\":%zu}",
				  i ? "," : "", digest_format(&layers[i].digest, name),
				  (size_t)layers[i].size),
			 &err);
	check_ok(buf_add(&text, STR("]}"), &err), &err);
	check_ok(blob_put(scratch, buf_str(&text), out, &err), &err);
}

void sample_image_write(struct store *scratch, const char *dir, const char *tag,
			enum sample_fault fault, struct sample_image *out)
{
	struct descriptor layers[SAMPLE_LAYERS];
	struct descriptor config;
	struct err err = {0};

	for (int i = 0; i < SAMPLE_LAYERS; i++) {
		bool again = fault == SAMPLE_TWICE && i == SAMPLE_LAYERS - 1;

		sample_layer(scratch, again ? 0 : i, fault, &layers[i], &out->diff_ids[i]);
		out->layers[i] = layers[i].digest;
	}
	if (fault == SAMPLE_WRONG_ID)
		out->diff_ids[SAMPLE_LAYERS - 1].bytes[0] ^= 1;
	if (fault == SAMPLE_SWAPPED) {
		out->diff_ids[0] = layers[1].digest;
		out->diff_ids[1] = layers[0].digest;
	}
	sample_config(scratch, out, fault, &config);
	out->config = config.digest;
	sample_manifest(scratch, &config, layers, &out->manifest);
	check_ok(layout_write(scratch, &out->manifest, str_of(dir), str_of(tag), NULL, &err), &err);
}
