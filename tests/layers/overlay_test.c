/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/overlay_priv.h"

#include "tests/check.h"

#include <sys/sysmacros.h>

static void bookkeeping_is_never_kept(void **state)
{
	static const char *const names[] = {
		"trusted.overlay.opaque",
		"trusted.overlay.origin",
		"user.overlay.opaque",
		"trusted.anything",
		"security.selinux",
		"system.other",
		"security.ima",
		"nonsense",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(overlay_keeps_xattr(names[i], S_IFREG));
		assert_false(overlay_keeps_xattr(names[i], S_IFDIR));
	}
}

static void what_a_file_can_have_is_kept(void **state)
{
	(void)state;
	assert_true(overlay_keeps_xattr("user.note", S_IFREG));
	assert_true(overlay_keeps_xattr("user.note", S_IFDIR));
	assert_false(overlay_keeps_xattr("user.note", S_IFLNK));
	assert_true(overlay_keeps_xattr("user.overlayed", S_IFREG));
	assert_true(overlay_keeps_xattr("security.capability", S_IFREG));
	assert_false(overlay_keeps_xattr("security.capability", S_IFDIR));
	assert_true(overlay_keeps_xattr("system.posix_acl_access", S_IFIFO));
	assert_false(overlay_keeps_xattr("system.posix_acl_access", S_IFLNK));
	assert_true(overlay_keeps_xattr("system.posix_acl_default", S_IFDIR));
	assert_false(overlay_keeps_xattr("system.posix_acl_default", S_IFREG));
}

static void a_capability_of_the_ranges_root_becomes_version_2(void **state)
{
	static const char v3[24] = "\1\0\0\3\0\40\0\0";
	static const char v2[20] = "\1\0\0\2\0\40\0\0";
	char out[CAPABILITY_V2_SIZE];

	(void)state;
	assert_true(str_equal(overlay_capability((struct str){v3, sizeof(v3)}, out),
			      (struct str){v2, sizeof(v2)}));
}

static void other_capabilities_stay_as_they_are(void **state)
{
	static const char of_1000[24] = {1, 0, 0, 3, 0, 32, 0, 0, 0,          0, 0, 0,
					 0, 0, 0, 0, 0, 0,  0, 0, (char)0xe8, 3, 0, 0};
	static const char v2[20] = "\1\0\0\2\0\40\0\0";
	char out[CAPABILITY_V2_SIZE];

	(void)state;
	assert_ptr_equal(overlay_capability((struct str){of_1000, 24}, out).ptr, of_1000);
	assert_ptr_equal(overlay_capability((struct str){v2, 20}, out).ptr, v2);
	assert_ptr_equal(overlay_capability((struct str){v2, 3}, out).ptr, v2);
}

static void only_device_zero_is_a_whiteout(void **state)
{
	const struct stat whiteout = {.st_mode = S_IFCHR};
	const struct stat null = {.st_mode = S_IFCHR | 0666, .st_rdev = makedev(1, 3)};
	const struct stat block = {.st_mode = S_IFBLK};

	(void)state;
	assert_true(overlay_is_whiteout(&whiteout));
	assert_false(overlay_is_whiteout(&null));
	assert_false(overlay_is_whiteout(&block));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bookkeeping_is_never_kept),
		cmocka_unit_test(what_a_file_can_have_is_kept),
		cmocka_unit_test(a_capability_of_the_ranges_root_becomes_version_2),
		cmocka_unit_test(other_capabilities_stay_as_they_are),
		cmocka_unit_test(only_device_zero_is_a_whiteout),
	};

	return cmocka_run_group_tests_name("layers/overlay", tests, NULL, NULL);
}
