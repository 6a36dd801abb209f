package feign.reactive;

import feign.Feign;

/** A builder in the package of Feign's reactive builders, which are not supported. */
public final class FakeReactorBuilder extends Feign.Builder {}
