package feign.hystrix;

import feign.Feign;

/** A builder in the package of Feign's builder for Hystrix, which is not supported. */
public final class FakeHystrixBuilder extends Feign.Builder {}
