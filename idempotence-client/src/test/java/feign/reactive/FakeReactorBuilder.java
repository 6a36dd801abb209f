package feign.reactive;

import feign.Feign;

/** Named as the builders that are not supported are. */
public final class FakeReactorBuilder extends Feign.Builder {}
