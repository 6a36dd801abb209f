package io.idempotence.it.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import io.idempotence.IdempotenceException;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Clock;
import java.time.Instant;

/** The allowed dependencies between the library modules and their packages. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ProductTypes.OfLibraries.class)
class ArchitectureTest {
    private static final String CLIENT = "io.idempotence.client..";
    private static final String SERVER = "io.idempotence.server..";
    private static final String[] COMMON = {"io.idempotence", "io.idempotence.http..", "io.idempotence.internal.."};

    @ArchTest
    static final ArchRule commonNeedsNothingButTheJdk = classes()
            .that()
            .resideInAnyPackage(COMMON)
            .should()
            .onlyDependOnClassesThat(resideInAnyPackage(COMMON).or(resideInAnyPackage("java..", "org.jspecify..")));

    @ArchTest
    static final ArchRule everyTypeIsInAModule = classes()
            .should()
            .resideInAnyPackage("io.idempotence", "io.idempotence.http..", "io.idempotence.internal..", CLIENT, SERVER);

    @ArchTest
    static final ArchRule clientDependsOnNoServer =
            noClasses().that().resideInAPackage(CLIENT).should().dependOnClassesThat(of("the server", SERVER));

    @ArchTest
    static final ArchRule serverDependsOnNoClient =
            noClasses().that().resideInAPackage(SERVER).should().dependOnClassesThat(of("the client", CLIENT));

    /** The storage's clock decides. Only the storage in memory has none but the host's. */
    @ArchTest
    static final ArchRule serverNeverReadsTheHostsTime = noClasses()
            .that()
            .resideInAPackage(SERVER)
            .and()
            .doNotHaveSimpleName("MonotonicClock")
            .should()
            .callMethod(System.class, "currentTimeMillis")
            .orShould()
            .callMethod(Instant.class, "now")
            .orShould()
            .callMethod(Clock.class, "systemUTC")
            .orShould()
            .callMethod(Clock.class, "systemDefaultZone");

    @ArchTest
    static final ArchRule onlyTheFeignHalfUsesFeign = onlyIn("io.idempotence.client.feign..", of("Feign", "feign.."));

    /** OkHttp is optional: a user without it loads no class of ours that needs it. The adapter is loaded where Feign runs over OkHttp. */
    @ArchTest
    static final ArchRule onlyTheOkHttpHalfAndTheAdapterOfFeignUseOkHttp = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.client.okhttp..")
            .and()
            .haveNameNotMatching("io\\.idempotence\\.client\\.feign\\.EndableOkHttp(\\$.*)?")
            .should()
            .dependOnClassesThat(of("OkHttp", "okhttp3..", "okio..", "kotlin.."));

    /** The client retries, the server's guard opens a circuit breaker. Neither needs more of the family. */
    @ArchTest
    static final ArchRule onlyTheClientAndTheGuardOfTheStorageUseResilience4j = noClasses()
            .that()
            .resideOutsideOfPackage(CLIENT)
            .and()
            .doNotHaveFullyQualifiedName("io.idempotence.server.StorageGuard")
            .should()
            .dependOnClassesThat(of("Resilience4j", "io.github.resilience4j.."));

    @ArchTest
    static final ArchRule onlyTheServletPackageUsesServlets =
            onlyIn("io.idempotence.server.servlet..", of("the Servlet API", "jakarta.servlet..", "javax.servlet.."));

    @ArchTest
    static final ArchRule onlyTheRedisStorageUsesTheDriver = onlyIn(
            "io.idempotence.server.redis..", of("the Redis driver", "redis.clients..", "org.apache.commons.pool2.."));

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
            noClasses().should(dependOnAStorageOfAnotherPackage());

    @ArchTest
    static final ArchRule storagesDoNotDependOnTheEngine = noClasses()
            .that()
            .resideInAPackage("io.idempotence.server.storage..")
            .should()
            .dependOnClassesThat(
                    of("the server", SERVER).and(not(resideInAnyPackage("io.idempotence.server.storage.."))));

    @ArchTest
    static final ArchRule packagesHaveNoCycles =
            slices().matching("io.idempotence.(**)").should().beFreeOfCycles();

    private static DescribedPredicate<JavaClass> of(String name, String... packages) {
        return resideInAnyPackage(packages).as(name);
    }

    private static ArchRule onlyIn(String allowed, DescribedPredicate<JavaClass> what) {
        return noClasses().that().resideOutsideOfPackage(allowed).should().dependOnClassesThat(what);
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
