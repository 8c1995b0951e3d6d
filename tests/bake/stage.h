/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - a scene (scene.h) and a store, for tests of what is remembered of a context. */
#pragma once

#include "tests/bake/scene.h"
#include "tests/layers/store_fixture.h"

struct stage {
	struct scene scene;
	struct store_fixture *fixture;
};

/* For cmocka: one stage a test, as its state. */
static inline int stage_setup(void **state)
{
	static struct stage stage;
	void *fixture;

	scene_open(&stage.scene);
	(void)store_fixture_open(&fixture);
	stage.fixture = fixture;
	*state = &stage;
	return 0;
}

static inline int stage_teardown(void **state)
{
	struct stage *stage = *state;
	void *fixture = stage->fixture;

	scene_close(&stage->scene);
	return store_fixture_close(&fixture);
}
