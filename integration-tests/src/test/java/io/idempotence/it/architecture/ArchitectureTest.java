package io.idempotence.it.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnitAccess;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.junit.ArchTests;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import io.idempotence.ClassCycles;
import io.idempotence.IdempotenceException;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.storage.IdempotenceStorage;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * The allowed dependencies between the modules, packages and classes of the product, and the types of others that they may use. The starter
 * joins all modules with Spring, so most rules are about the libraries.
 */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ProductTypes.class)
class ArchitectureTest {
    private static final String CLIENT = "io.idempotence.client..";
    private static final String SERVER = "io.idempotence.server..";
    private static final String STARTER = "io.idempotence.spring..";
    private static final String[] COMMON = {"io.idempotence", "io.idempotence.http..", "io.idempotence.internal.."};

    /** A part of this class because most of the time goes into reading the classes of the product. */
    @ArchTest
    static final ArchTests publicTypes = ArchTests.in(PublicTypes.class);

    @ArchTest
    static final ArchRule commonNeedsNothingButTheJdk = classes()
            .that()
            .resideInAnyPackage(COMMON)
            .should()
            .onlyDependOnClassesThat(resideInAnyPackage(COMMON).or(resideInAnyPackage("java..", "org.jspecify..")));

    @ArchTest
    static final ArchRule everyTypeIsInAModule = classes()
            .should()
            .resideInAnyPackage(
                    "io.idempotence", "io.idempotence.http..", "io.idempotence.internal..", CLIENT, SERVER, STARTER);

    @ArchTest
    static final ArchRule clientDependsOnNoServer =
            noClasses().that().resideInAPackage(CLIENT).should().dependOnClassesThat(of("the server", SERVER));

    @ArchTest
    static final ArchRule serverDependsOnNoClient =
            noClasses().that().resideInAPackage(SERVER).should().dependOnClassesThat(of("the client", CLIENT));

    /** The storage's clock decides: a host whose clock is an hour off must behave as any other. {@code System.nanoTime} only measures. */
    @ArchTest
    static final ArchRule serverNeverReadsTheHostsTime = noClasses()
            .that()
            .resideInAPackage(SERVER)
            .and()
            // Time since the start of the process, for the storage that ends with it.
            .doNotHaveSimpleName("MonotonicClock")
            .should(readTheWallClockOutsideOf());

    /**
     * Times are measured by the monotonic clock, so that a jump of the other one neither cuts a call short nor drags it out. That
     * one is read where the protocol speaks of dates: Retry-After, the time of the first request, the server's retention. What
     * Retry-After comes to is capped by the deadline.
     */
    @ArchTest
    static final ArchRule clientReadsTheWallClockForDatesOnly = noClasses()
            .that()
            .resideInAPackage(CLIENT)
            .should(readTheWallClockOutsideOf(
                    "io.idempotence.client.internal.call.CallStateMachine.poll",
                    "io.idempotence.client.internal.call.RetryDecision.waitOrStop",
                    "io.idempotence.client.internal.scope.ScopeHistory$Call.<init>",
                    "io.idempotence.client.internal.scope.ScopeHistory$Call.sent",
                    "io.idempotence.client.internal.call.CallIdentity.checkRetention"));

    /** The JDK's scheduler thread outlives a web application, and its context class loader is that of its first user. */
    @ArchTest
    static final ArchRule nobodyRunsOnThreadsThatTheJdkShares = noClasses()
            .that()
            .resideInAnyPackage(CLIENT, SERVER)
            .should()
            .callMethodWhere(describe(
                    "runs on a thread that the JDK shares",
                    call -> call.getTargetOwner().isAssignableTo(CompletionStage.class)
                            && call.getName().matches("orTimeout|completeOnTimeout|delayedExecutor|.*Async")));

    @ArchTest
    static final ArchRule clientDependsOnNoHttpLibraryAndOnInternalsOnlyForTheScope = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client")
            .should()
            .dependOnClassesThat(resideInAnyPackage("io.idempotence.client.*..", "feign..", "okhttp3..", "okio..")
                    .and(not(resideInAnyPackage("io.idempotence.client.internal.scope"))));

    @ArchTest
    static final ArchRule scopesAndHttpDependOnNoCalls = noClasses()
            .that()
            .resideInAnyPackage("io.idempotence.client.internal.scope", "io.idempotence.client.internal.http")
            .should()
            .dependOnClassesThat(of(
                    "calls",
                    "io.idempotence.client",
                    "io.idempotence.client.internal.call",
                    "io.github.resilience4j.."));

    @ArchTest
    static final ArchRule internalsDependOnNoHttpLibrary = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client.internal..")
            .should()
            .dependOnClassesThat(of(
                    "an HTTP library",
                    "io.idempotence.client.feign..",
                    "io.idempotence.client.okhttp..",
                    "feign..",
                    "okhttp3..",
                    "okio.."));

    /** Packages that are public to the compiler but not to users. RestClient's half is beside those of Feign and OkHttp. */
    @ArchTest
    static final ArchRule retryMachineryIsUsedByClientsOnly = noClasses()
            .that()
            .resideOutsideOfPackages(CLIENT, "io.idempotence.spring.client..")
            .should()
            .dependOnClassesThat(of("the client's internals", "io.idempotence.client.internal.."));

    @ArchTest
    static final ArchRule feignTypesThatOlderVersionsLackAreNotUsed = noClasses()
            .that()
            .resideInAPackage(CLIENT)
            .should()
            .dependOnClassesThat()
            .haveNameMatching("feign\\.(RequestInterceptors|ResponseInterceptors|DefaultRetryer|DefaultClient"
                    + "|DefaultInvocationHandlerFactory|interceptor\\..*)");

    @ArchTest
    static final ArchRule onlyTheFeignHalfUsesFeign = onlyIn("io.idempotence.client.feign..", of("Feign", "feign.."));

    /** OkHttp is optional: a user without it loads no class of ours that needs it. The adapter is loaded where Feign runs over OkHttp. */
    @ArchTest
    static final ArchRule onlyTheOkHttpHalfAndTheAdapterOfFeignUseOkHttp = noClasses()
            .that()
            .resideOutsideOfPackages("io.idempotence.client.okhttp..", STARTER)
            .and()
            .haveNameNotMatching("io\\.idempotence\\.client\\.feign\\.CancellableOkHttp(\\$.*)?")
            .should()
            .dependOnClassesThat(of("OkHttp", "okhttp3..", "okio..", "kotlin.."));

    @ArchTest
    static final ArchRule onlyTheAdapterUsesFeignsClientForTheJdk = noClasses()
            .that()
            .doNotHaveFullyQualifiedName("io.idempotence.client.feign.CancellableHttp2")
            .should()
            .dependOnClassesThat(of("Feign's client for java.net.http", "feign.http2client.."));

    /** The client retries, the server's guard opens a circuit breaker. Neither needs more of the family. */
    @ArchTest
    static final ArchRule onlyTheClientAndTheGuardOfTheStorageUseResilience4j = noClasses()
            .that()
            .resideOutsideOfPackages(CLIENT, STARTER)
            .and()
            .doNotHaveFullyQualifiedName("io.idempotence.server.StorageGuard")
            .should()
            .dependOnClassesThat(of("Resilience4j", "io.github.resilience4j.."));

    @ArchTest
    static final ArchRule onlyTheServletPackageUsesServlets =
            onlyIn("io.idempotence.server.servlet..", of("the Servlet API", "jakarta.servlet..", "javax.servlet.."));

    @ArchTest
    static final ArchRule onlyMetricsUseMicrometer = noClasses()
            .that()
            .resideOutsideOfPackages("io.idempotence.client.metrics..", "io.idempotence.server.metrics..", STARTER)
            .should()
            .dependOnClassesThat(of("Micrometer", "io.micrometer..", "io.idempotence.*.metrics.."));

    /** Besides the driver's own package, only the storage names the driver, in what users pass. */
    @ArchTest
    static final ArchRule onlyTheRedisStorageUsesTheDriver = noClasses()
            .that()
            .resideOutsideOfPackages("io.idempotence.server.redis.internal.jedis", STARTER)
            .and()
            .haveNameNotMatching("io\\.idempotence\\.server\\.redis\\.RedisIdempotenceStorage(\\$Builder)?")
            .should()
            .dependOnClassesThat(of("the Redis driver", "redis.clients..", "org.apache.commons.pool2.."));

    @ArchTest
    static final ArchRule nothingDependsOnTheStorageInRedis =
            onlyIn("io.idempotence.server.redis..", of("the storage in Redis", "io.idempotence.server.redis.."));

    @ArchTest
    static final ArchRule nothingDependsOnTheServletPackage =
            onlyIn("io.idempotence.server.servlet..", of("the filter", "io.idempotence.server.servlet.."));

    @ArchTest
    static final ArchRule nothingDependsOnTheFeignHalf =
            onlyIn("io.idempotence.client.feign..", of("the Feign half", "io.idempotence.client.feign.."));

    @ArchTest
    static final ArchRule nothingDependsOnTheOkHttpHalf =
            onlyIn("io.idempotence.client.okhttp..", of("the OkHttp half", "io.idempotence.client.okhttp.."));

    @ArchTest
    static final ArchRule nothingDependsOnTheStorageInADatabase = onlyIn(
            "io.idempotence.server.jdbc..", of("JDBC", "io.idempotence.server.jdbc..", "java.sql..", "javax.sql.."));

    /** No driver, no pool, no framework: any {@code DataSource} will do. */
    @ArchTest
    static final ArchRule theStorageInADatabaseNeedsOnlyTheJdkAndTheStorages = noClasses()
            .that()
            .resideInAPackage("io.idempotence.server.jdbc..")
            .should()
            .dependOnClassesThat(not(resideInAnyPackage(
                            "io.idempotence.server.jdbc..",
                            "io.idempotence.server.storage..",
                            "io.idempotence.internal..",
                            "java..",
                            "javax.net.ssl..",
                            "javax.sql..",
                            "org.slf4j..",
                            "org.jspecify.."))
                    .and(not(belongToAnyOf(IdempotentExecution.class, IdempotenceException.class))));

    @ArchTest
    static final ArchRule nothingDependsOnAStorageOfAnotherPackage =
            noClasses().that().resideOutsideOfPackage(STARTER).should(dependOnAStorageOfAnotherPackage());

    @ArchTest
    static final ArchRule storageDependsOnNothingElseOfTheServer = classes()
            .that()
            .resideInAPackage("io.idempotence.server.storage..")
            .should()
            .onlyDependOnClassesThat(resideInAnyPackage(
                    "io.idempotence",
                    "io.idempotence.internal",
                    "io.idempotence.server.storage..",
                    "java..",
                    "org.jspecify.."));

    @ArchTest
    static final ArchRule packagesHaveNoCycles =
            slices().matching("io.idempotence.(**)").should().beFreeOfCycles();

    @ArchTest
    static final ArchRule classesHaveNoCycles = ClassCycles.none();

    private static DescribedPredicate<JavaClass> of(String name, String... packages) {
        return resideInAnyPackage(packages).as(name);
    }

    private static ArchRule onlyIn(String allowed, DescribedPredicate<JavaClass> what) {
        return noClasses()
                .that()
                .resideOutsideOfPackages(allowed, STARTER)
                .should()
                .dependOnClassesThat(what);
    }

    /** @param places methods that may, by their name with that of their class */
    private static ArchCondition<JavaClass> readTheWallClockOutsideOf(String... places) {
        return new ArchCondition<>("read the wall clock outside of " + List.of(places)) {
            @Override
            public void check(JavaClass type, ConditionEvents events) {
                for (JavaCodeUnitAccess<?> access : type.getCodeUnitAccessesFromSelf()) {
                    String from = access.getOwner().getOwner().getName() + "."
                            + access.getOwner().getName();
                    if (isWallClock(access) && Arrays.stream(places).noneMatch(from::startsWith)) {
                        events.add(SimpleConditionEvent.satisfied(access, access.getDescription()));
                    }
                }
            }
        };
    }

    private static boolean isWallClock(JavaCodeUnitAccess<?> access) {
        String type = access.getTargetOwner().getName();
        String name = access.getTarget().getName();
        return (type.startsWith("java.time.") && name.matches("now|system.*"))
                || (type.equals("java.lang.System") && name.equals("currentTimeMillis"))
                || (type.equals("java.util.Date")
                        && access.getTarget().getRawParameterTypes().isEmpty())
                || (type.equals("java.util.Calendar") && name.equals("getInstance"));
    }

    /** A storage is chosen by the application; neither the engine nor another storage names it. */
    private static ArchCondition<JavaClass> dependOnAStorageOfAnotherPackage() {
        return new ArchCondition<>("know a storage of another package") {
            @Override
            public void check(JavaClass item, ConditionEvents events) {
                for (Dependency dependency : item.getDirectDependenciesFromSelf()) {
                    JavaClass target = dependency.getTargetClass();
                    boolean storage = !target.isInterface() && target.isAssignableTo(IdempotenceStorage.class);
                    boolean away = !target.getPackageName().equals(item.getPackageName());
                    if (storage && away) {
                        events.add(SimpleConditionEvent.satisfied(item, dependency.getDescription()));
                    }
                }
            }
        };
    }
}
